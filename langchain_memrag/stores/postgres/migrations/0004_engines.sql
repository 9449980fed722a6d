-- Engines beside Postgres: which there are, and what they do not hold yet.

-- Which memory this is. Engines keep it, so that the spaces of two memories never meet in one of them.
CREATE TABLE {schema}.memory (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO {schema}.memory DEFAULT VALUES;

-- One engine a role. Every process marks work for all of them, whether it can reach them or not.
CREATE TABLE {schema}.engine (
    role  text PRIMARY KEY CHECK (role IN ('search', 'graph', 'cache')),
    name  text NOT NULL,
    place text NOT NULL,                    -- without credentials
    since timestamptz NOT NULL
);

-- `search` and `graph`: a record that the engine does not hold as Postgres does. `erase_*`: one that it may
-- still hold though it was forgotten; the nil id stands for all of a space.
ALTER TABLE {schema}.pending DROP CONSTRAINT pending_work_check;
ALTER TABLE {schema}.pending ADD CONSTRAINT pending_work_check
    CHECK (work IN ('index', 'search', 'graph', 'erase_search', 'erase_graph', 'erase_cache'));
CREATE INDEX pending_engines ON {schema}.pending (work, space, record) WHERE work <> 'index';
