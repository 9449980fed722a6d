-- The graph: entities, which records mention them, and how they relate, all per space.
--
-- `mentions` and `weight` count the rows of `mention` and `relation_source`: an entity or a relation
-- that no record supports any more is swept by the write that took its last support away.
CREATE TABLE {schema}.entity (
    space bigint NOT NULL,
    mentions integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL,
    PRIMARY KEY (space, key)
) WITH (fillfactor = 85);

CREATE TABLE {schema}.mention (
    space bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    record uuid NOT NULL,
    key text NOT NULL,
    PRIMARY KEY (space, record, key)
);

-- Newest records of an entity first; index-only.
CREATE INDEX mention_key ON {schema}.mention (space, key, record) INCLUDE (expires_at);

CREATE TABLE {schema}.relation (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space bigint NOT NULL,
    valid_from timestamptz,
    valid_to timestamptz,
    weight integer NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    type text NOT NULL,
    predicate text NOT NULL
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX relation_edge ON {schema}.relation (space, source, target, type, md5(predicate));
CREATE INDEX relation_from ON {schema}.relation (space, source, weight DESC) INCLUDE (target);
CREATE INDEX relation_to ON {schema}.relation (space, target, weight DESC) INCLUDE (source);

CREATE TABLE {schema}.relation_source (
    space bigint NOT NULL,
    relation bigint NOT NULL,
    record uuid NOT NULL,
    PRIMARY KEY (space, record, relation)
);

CREATE INDEX relation_source_relation ON {schema}.relation_source (relation, record);

ALTER TABLE {schema}.mention SET (autovacuum_vacuum_insert_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.05);
