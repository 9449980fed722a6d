-- The search index: what can be found, and by which vectors and words.
--
-- `entry` holds one row per indexed view of a part of a record, numbered densely inside its space.
-- Sessions and agents stand here as 64-bit hashes (0: none), so that every row that a query filters on
-- has a fixed width; an entry that never expires expires at infinity.
CREATE TABLE {schema}.entry (
    space bigint NOT NULL,
    record uuid NOT NULL,
    occurred_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    session bigint NOT NULL,
    agent bigint NOT NULL,
    id integer NOT NULL,
    part integer NOT NULL,
    layer smallint NOT NULL,
    view smallint NOT NULL,
    role smallint NOT NULL,
    -- The terms it was counted under, so that the counts can be taken back.
    terms integer[] NOT NULL,
    -- Records besides its own whose words it contains.
    also uuid[] NOT NULL
);

-- Covering: a search narrowed by role, agent or time reads which entries it may return from it.
CREATE UNIQUE INDEX entry_id ON {schema}.entry (space, id)
    INCLUDE (occurred_at, expires_at, session, agent, role);
CREATE UNIQUE INDEX entry_record ON {schema}.entry (space, record, view, part);
CREATE INDEX entry_session ON {schema}.entry (space, session, id) WHERE session <> 0;
CREATE INDEX entry_expiry ON {schema}.entry (space, expires_at) INCLUDE (id) WHERE expires_at < 'infinity';

-- Which entries hold the words of a record that is not their own.
CREATE TABLE {schema}.entry_source (
    space bigint NOT NULL,
    source uuid NOT NULL,
    entry integer NOT NULL,
    PRIMARY KEY (space, source, entry)
);

-- One row per term of an entry. The weight is the document's part of BM25.
CREATE TABLE {schema}.posting (
    space bigint NOT NULL,
    term integer NOT NULL,
    entry integer NOT NULL,
    weight real NOT NULL,
    view smallint NOT NULL
);

-- Narrow and read index-only: a lexical query costs about what its postings weigh.
CREATE UNIQUE INDEX posting_term ON {schema}.posting (space, view, term, entry) INCLUDE (weight);

-- How many entries of a view hold a term, and how many there are. Rewritten in place by every write.
-- `peak` bounds the weights of the term from above; it never falls, so that removals need not look.
CREATE TABLE {schema}.term_stat (
    space bigint NOT NULL,
    term integer NOT NULL,
    df integer NOT NULL,
    peak real NOT NULL,
    view smallint NOT NULL,
    PRIMARY KEY (space, view, term)
) WITH (fillfactor = 75);

CREATE TABLE {schema}.view_stat (
    space bigint NOT NULL,
    entries bigint NOT NULL,
    view smallint NOT NULL,
    PRIMARY KEY (space, view)
) WITH (fillfactor = 50);

-- Spaces so large that their vectors have a copy with a nearest-neighbour graph:
-- `vector_<embedder>_space_<space>` holds the entries up to `watermark`.
CREATE TABLE {schema}.ann (
    space bigint NOT NULL,
    embedder integer NOT NULL,
    watermark integer NOT NULL,
    PRIMARY KEY (space, embedder)
);

-- Index-only scans need a fresh visibility map: vacuum after inserts, not only after deletes.
ALTER TABLE {schema}.entry SET (autovacuum_vacuum_insert_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE {schema}.posting SET (autovacuum_vacuum_insert_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05);
