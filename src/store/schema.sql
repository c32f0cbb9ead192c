-- The fixed part of a store. The columns of "result" are added by store.c from the tables of record/,
-- so that a new row there becomes a column here.
--
-- "line" is what was given to us and is never changed; "result" is an index of it that can be made
-- again from it at any time.

PRAGMA application_id = 0x50524f4e; -- "PRON"
PRAGMA user_version = 2;

CREATE TABLE line (
    id      INTEGER PRIMARY KEY,
    hash    INTEGER NOT NULL,           -- of text
    kind    TEXT NOT NULL,              -- result, machine, network, proof, profile
    text    TEXT NOT NULL,              -- one JSON object, with its samples
    shipped INTEGER NOT NULL DEFAULT 0  -- 1: came with prony
);

CREATE TABLE result (
    id INTEGER PRIMARY KEY REFERENCES line (id)
);

-- How many records were removed, ever: whoever remembers some looks here whether all are still there.
CREATE TABLE removal (count INTEGER NOT NULL);
INSERT INTO removal VALUES (0);

-- The benches that are adding records at this moment.
CREATE TABLE running (
    process INTEGER PRIMARY KEY,
    server  TEXT NOT NULL,
    started TEXT NOT NULL,
    updated INTEGER NOT NULL, -- seconds since 1970
    done    INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    current TEXT NOT NULL,
    left_s  REAL,             -- NULL until one can tell
    curve   TEXT              -- of a training: [[epoch, loss, held-out loss or null], …]; or NULL
);

-- The one index: it finds a line that is there already, and the lines of a kind. Questions are answered
-- from memory (store_columns.h) and need none. What follows is run whenever a store is opened to be
-- changed: older ones have two others.
CREATE INDEX IF NOT EXISTS line_kind_hash ON line (kind, hash);
DROP INDEX IF EXISTS line_hash;
DROP INDEX IF EXISTS line_kind;
