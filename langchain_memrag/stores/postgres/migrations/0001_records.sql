-- The record: what was said, whose it is, and what is left to do with it.

-- A space is the unit of isolation. Its row is the lock under which its episodes are numbered.
CREATE TABLE {schema}.space (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('user', 'collection')),
    key        text NOT NULL,
    seq        bigint NOT NULL DEFAULT 0,   -- the last number given to an episode
    entry_seq  bigint NOT NULL DEFAULT 0,   -- the last number given to an index entry
    generation bigint NOT NULL DEFAULT 0,   -- grows with all that changes what a recall can find
    learned    bigint NOT NULL DEFAULT 0,   -- watermark on seq: learned from up to here
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (kind, key)
) WITH (fillfactor = 70);

CREATE TABLE {schema}.episode (
    space       bigint NOT NULL,
    id          uuid NOT NULL,
    seq         bigint NOT NULL,
    session     text NOT NULL,              -- '' stands for none, so that the index finds it
    agent       text,
    role        text NOT NULL,
    speaker     text,
    content     text NOT NULL,
    occurred_at timestamptz NOT NULL,
    utc_offset  integer NOT NULL,
    recorded_at timestamptz NOT NULL,
    source      text NOT NULL,
    key         text,
    expires_at  timestamptz,
    predecessor uuid,                       -- the session's previous episode, fixed when written
    metadata    json NOT NULL,
    PRIMARY KEY (space, id)
);

CREATE UNIQUE INDEX episode_key ON {schema}.episode (space, key) WHERE key IS NOT NULL;
-- Covering: what stands beside a turn, and who said it, is read from the index alone.
CREATE INDEX episode_session ON {schema}.episode (space, session, seq) INCLUDE (id, role, speaker);
CREATE INDEX episode_time ON {schema}.episode (space, occurred_at, seq);
CREATE INDEX episode_expiry ON {schema}.episode (expires_at, space) WHERE expires_at IS NOT NULL;

-- Work that a record still waits for. A row goes in the transaction that does the work.
CREATE TABLE {schema}.pending (
    space      bigint NOT NULL,
    record     uuid NOT NULL,
    work       text NOT NULL CHECK (work IN ('index', 'erase')),
    fresh      boolean NOT NULL DEFAULT false,  -- nothing was ever indexed of it
    attempts   integer NOT NULL DEFAULT 0,
    not_before timestamptz NOT NULL,
    error      text,                        -- the kind of the last failure, never its words
    PRIMARY KEY (space, record, work)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- An embedder is recognised by name, width and how it embeds the probe texts.
CREATE TABLE {schema}.embedder (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    width      integer NOT NULL CHECK (width BETWEEN 1 AND 16000),
    probes     bytea NOT NULL,              -- float32, one row of `width` after another
    state      text NOT NULL CHECK (state IN ('active', 'building', 'retired')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX embedder_active ON {schema}.embedder (state) WHERE state = 'active';
