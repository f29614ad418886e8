-- What a call wants done with the end of its turn, as a JSON list. Written with its result, so that it is done once.
ALTER TABLE tool_calls ADD COLUMN effects TEXT NOT NULL DEFAULT '[]';
