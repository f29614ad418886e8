-- A house with 10,000 sessions, for the database of a home whose gateway has run once: 3,000 private chats, 200 groups with 19
-- topics each, 300 Discord channels with 9 threads each. In each session 8 messages, 2 ended turns and the spending of one day.

CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < 9999) SELECT n FROM up;
CREATE TEMP TABLE clock AS SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS now;
CREATE TEMP TABLE team AS SELECT uid, row_number() OVER (ORDER BY slug) - 1 AS number FROM agents;

INSERT INTO places (key, name, active_at, created_at)
    SELECT 'telegram:dm:' || (200000 + n), NULL, now - n * 60000, now - 90000000000 FROM numbers, clock WHERE n < 3000;
INSERT INTO places (key, name, active_at, created_at)
    SELECT CASE n % 20 WHEN 0 THEN 'telegram:group:' ELSE 'telegram:topic:' END || (-1002000000000 - n / 20)
               || CASE n % 20 WHEN 0 THEN '' ELSE ':' || (n % 20 + 1) END,
           CASE n % 20 WHEN 0 THEN 'Group ' || (n / 20) ELSE 'Topic ' || (n % 20) || ' of group ' || (n / 20) END,
           now - n * 45000, now - 90000000000
    FROM numbers, clock WHERE n < 4000;
INSERT INTO places (key, name, active_at, created_at)
    SELECT CASE n % 10 WHEN 0 THEN 'discord:channel:' ELSE 'discord:thread:' END || (700000000000000000 + n / 10 * 1000)
               || CASE n % 10 WHEN 0 THEN '' ELSE ':' || (700000000000000000 + n / 10 * 1000 + n % 10) END,
           CASE n % 10 WHEN 0 THEN 'channel-' || (n / 10) ELSE 'Thread ' || (n % 10) || ' of channel ' || (n / 10) END,
           now - n * 50000, now - 90000000000
    FROM numbers, clock WHERE n < 3000;

-- Each session with the person who writes there, and its agent.
CREATE TEMP TABLE sessions AS
    SELECT places.id AS place_id, CAST(active_at AS INTEGER) AS at, team.uid AS uid,
           CASE WHEN key GLOB 'telegram:dm:*' THEN 'telegram:' || substr(key, 13)
                WHEN key GLOB 'telegram:*' THEN 'telegram:' || (200000 + places.id % 3000)
                ELSE 'discord:' || (800000000000000000 + places.id % 2000) END AS person
    FROM places JOIN team ON team.number = places.id % (SELECT count(*) FROM team) WHERE active_at IS NOT NULL;
INSERT INTO person_numbers (person) SELECT DISTINCT person FROM sessions;
INSERT INTO people (id, name, paired_at, paired_by, created_at)
    SELECT DISTINCT person, 'Person ' || substr(person, -5), now, 'cli', now - 90000000000 FROM sessions, clock;

-- In the order in which people write: the sessions take turns.
INSERT INTO messages (place_id, conversation, kind, inbox_id, agent_uid, part_uid, person, person_name, role, text, created_at, labels)
    SELECT place_id, 1, CASE n % 2 WHEN 0 THEN 'person' ELSE 'agent' END, NULL, CASE n % 2 WHEN 0 THEN NULL ELSE uid END, uid, person,
           CASE n % 2 WHEN 0 THEN 'Person ' || substr(person, -5) END, CASE n % 2 WHEN 0 THEN 'member' END,
           'What is there to see in the garden this morning, and who waters it? ' || n, at - (8 - n) * 1000, 0
    FROM numbers CROSS JOIN sessions WHERE n < 8 ORDER BY n, place_id;
INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome, steps, input_tokens, output_tokens, labels)
    SELECT 0, place_id, uid, 'fake/x', 'default agent', at - n * 2000 - 900, at - n * 2000, 'answered', 1, 1200, 80, 0
    FROM numbers CROSS JOIN sessions WHERE n < 2 ORDER BY n DESC, place_id;
INSERT INTO spending (day, agent_uid, place_id, person, model, turns, input_tokens, output_tokens, cost_micros)
    SELECT date(at / 1000, 'unixepoch', 'localtime'), uid, place_id, person, 'fake/x', 2, 2400, 160, 900 FROM sessions;
INSERT INTO budgets (day, spender, tokens, cost_micros)
    SELECT date(now / 1000, 'unixepoch', 'localtime'), 'person:' || person, 2560 * count(*), 900 * count(*)
    FROM sessions, clock GROUP BY person;
INSERT INTO pins (place_id, once, agent_uid, set_by, set_at)
    SELECT place_id, 0, uid, 'telegram:111', at FROM sessions WHERE place_id % 20 = 7;
INSERT INTO openings (place_id, opened_by, opened_at) SELECT place_id, 'telegram:111', at FROM sessions WHERE place_id % 5 = 2;
INSERT INTO outbox (place_id, kind, part, state, error, created_at)
    SELECT place_id, 'final', '{}', 'failed', 'the bot was removed from the group', at FROM sessions WHERE place_id % 100 = 3;
INSERT INTO audit (at, actor, name, place_id, agent, action, before, after)
    SELECT at, 'telegram:111', 'Alice', place_id, 'rose', 'switch', 'main', 'rose' FROM sessions WHERE place_id % 2 = 1;
INSERT INTO speakers (person, name, said_at) SELECT person, 'Person ' || substr(person, -5), max(at) - 2000 FROM sessions GROUP BY person;

DROP TABLE numbers;
DROP TABLE clock;
DROP TABLE team;
DROP TABLE sessions;
