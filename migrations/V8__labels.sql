-- Where the words of each row come from: a set of labels (src/domain/labels.rs). Absent in rows from before, which count as a
-- guest's words.
ALTER TABLE messages ADD COLUMN labels INTEGER;
ALTER TABLE summaries ADD COLUMN labels INTEGER;
-- Of a saved memory. Pieces of files have none.
ALTER TABLE memories ADD COLUMN labels INTEGER;
-- At first what the parent had read; at the end also what the subagent has read.
ALTER TABLE subagents ADD COLUMN labels INTEGER;
-- A JSON list of the web addresses in the task that trusted people wrote.
ALTER TABLE subagents ADD COLUMN addresses TEXT;
-- What a turn had read before its last round, what each call read, and in the end all of it.
ALTER TABLE open_turns ADD COLUMN labels INTEGER;
ALTER TABLE tool_calls ADD COLUMN labels INTEGER;
ALTER TABLE turns ADD COLUMN labels INTEGER;
