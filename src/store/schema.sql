-- The fixed part of a store. The columns of axes, derived axes and metrics are added to "result" by
-- store.c from the tables of record/, so that a new row there becomes a column here.
--
-- "line" is what was given to us and is never changed; "result" is an index of it that can be made
-- again from it at any time.

PRAGMA application_id = 0x50524f4e; -- "PRON"
PRAGMA user_version = 1;

CREATE TABLE line (
    id   INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL, -- of text: finds a line that is there already
    kind TEXT NOT NULL,    -- result, machine, network
    text TEXT NOT NULL     -- one JSON object, with its samples
);
CREATE INDEX line_hash ON line (hash);

CREATE TABLE result (
    id            INTEGER PRIMARY KEY REFERENCES line (id),
    status        TEXT NOT NULL,    -- ok, skipped, failed
    verdict       TEXT NOT NULL,    -- of the check: none, right, wrong
    configuration INTEGER NOT NULL  -- hash of the axes that were asked for
);
