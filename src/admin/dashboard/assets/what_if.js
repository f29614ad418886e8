// What if: walks a message through the rules, and tries edited rules on the last real messages.

import { call, data, freshen, Refused, setUnsaved, tell, toast } from "./app.js";

/** @type {{ config: { text: string, hash: string } }} */
const first = data("first");
let { text: saved, hash } = first.config;

/** @param {string} selector */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

const message = /** @type {HTMLFormElement} */ (find("#message"));
const which = /** @type {HTMLSelectElement} */ (find("#which"));
const madeUp = /** @type {HTMLFieldSetElement} */ (find("#made-up"));
const field = /** @type {HTMLTextAreaElement} */ (find("#text"));
const save = /** @type {HTMLButtonElement} */ (find("#rules button[type=submit]"));
const undo = /** @type {HTMLButtonElement} */ (find("#undo"));
const keep = /** @type {HTMLButtonElement} */ (find("#keep"));
const walkBox = find("#walk");
const changedBox = find("#changed");
const problemBox = find("#problems");
const gutter = find("#lines");
const state = find("#state");

/**
 * @param {string} tag @param {string} [name] @param {string | Node | null} [inside]
 * @param {Record<string, string>} [marks]
 */
function make(tag, name, inside, marks) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (inside instanceof Node) element.append(inside);
  else if (inside) element.textContent = inside;
  for (const [key, value] of Object.entries(marks || {})) element.setAttribute(key, value);
  return element;
}

/** @param {{ id: string, name: string | null } | null} told @param {string} [none] */
const named = (told, none = "nobody") => (told ? told.name || told.id : none);

const isEdited = () => field.value !== saved;

/* The message */

/** What the API takes for the chosen message; null for none. @returns {any} */
function chosen() {
  if (which.value) return { message: Number(which.value) };
  const form = new FormData(message);
  /** @param {string} name */
  const word = (name) => String(form.get(name) || "").trim();
  /** @param {string} name */
  const list = (name) => word(name).split(",").map((item) => item.trim()).filter(Boolean);
  if (!word("place")) return null;
  /** @type {any} */
  const made = { place: word("place"), mention: form.has("mention"), reply: form.has("reply"), roles: list("roles"), tags: list("tags") };
  for (const name of ["person", "role", "text", "topic", "server", "category"]) if (word(name)) made[name] = word(name);
  return { case: made };
}

/* The editor */

/** Line numbers, with a mark on lines that have a problem. @param {Set<number>} bad */
function number(bad) {
  const parts = [];
  let run = "";
  const count = field.value.split("\n").length;
  for (let line = 1; line <= count; line++) {
    if (bad.has(line)) {
      parts.push(run, make("b", "", String(line)));
      run = "\n";
    } else run += `${line}\n`;
  }
  gutter.replaceChildren(...parts, run);
  gutter.scrollTop = field.scrollTop;
}

/** Shows a line of the text, and selects it. @param {number} line @param {boolean} [focus] */
function show(line, focus = true) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const height = parseFloat(getComputedStyle(field).lineHeight) || 18;
  field.scrollTop = Math.max(0, (line - 3) * height);
  gutter.scrollTop = field.scrollTop;
  if (!focus) return;
  field.focus({ preventScroll: true });
  field.setSelectionRange(start, start + (lines[line - 1] || "").length);
}

/** The line of the first table of a list. @param {string} list */
const lineOf = (list) => field.value.split("\n").findIndex((line) => line.trim() === `[[${list}]]`) + 1;

/** @param {any[]} problems */
function showProblems(problems) {
  number(new Set(problems.map((problem) => problem.line)));
  problemBox.replaceChildren(
    ...problems.map((problem) => {
      const note = make("div", problem.severity === "error" ? "note bad" : "note warn");
      const jump = make("button", "quiet", `Line ${problem.line}`, { type: "button" });
      jump.addEventListener("click", () => show(problem.line));
      note.append(jump, make("span", "", ` ${problem.message}${problem.label ? ` (${problem.label})` : ""}`));
      if (problem.help) note.append(make("div", "small", problem.help));
      return note;
    }),
  );
}

/* The walk */

const TITLES = { access: "May speak", place: "Place", mention: "Mention", who: "Who", pause: "Pause", budget: "Limits" };
const SIGNS = { passes: "✓", stops: "✗", not_asked: "·" };
const SAID = { decides: "decides", under_pin: "under the pin", matches: "matches", misses: "does not match", no_rule: "no rule", not_here: "not here" };

/** @param {any} because */
const origin = (because) => (because ? `${because.setting}${because.line ? `, line ${because.line}` : ""}` : "");

/** @param {any} walk */
function showWalk(walk) {
  const place = walk.path || named(walk.place);
  const person = walk.person ? named(walk.person) : "Anybody";
  const verdict = make("p", walk.agent || walk.is_command ? "note good" : "note warn", walk.told, { "data-agent": walk.agent ? walk.agent.id : "nobody" });
  const from = make("p", "soft small", `${person}, as ${walk.role}, in ${place}`);
  walkBox.replaceChildren(verdict, from, stages(walk.stages), ranks(walk.ranks), abilities(walk));
}

/** @param {any[]} all */
function stages(all) {
  const list = make("ol", "stages", null, { "aria-label": "What the message is asked" });
  for (const stage of all) {
    const row = make("li", stage.state, null, { "data-stage": stage.stage, "data-state": stage.state });
    const text = make("span", "", stage.text);
    if (stage.because) text.append(make("small", "soft", ` ${origin(stage.because)}`));
    row.append(make("i", "", SIGNS[/** @type {keyof typeof SIGNS} */ (stage.state)], { "aria-hidden": "true" }), make("b", "", TITLES[/** @type {keyof typeof TITLES} */ (stage.stage)] || stage.stage), text);
    if (stage.state === "stops") row.append(make("span", "sr", "stops here"));
    list.append(row);
  }
  return list;
}

/** @param {any[]} all */
function ranks(all) {
  const table = make("table", "ranks");
  table.append(make("caption", "", "Rules, strongest first"));
  const body = make("tbody");
  for (const rank of all) {
    const row = make("tr", rank.says, null, { "data-rank": rank.rank, "data-says": rank.says });
    const why = make("td");
    why.append(make("span", rank.says === "decides" ? "tag good" : rank.says === "misses" || rank.says === "matches" || rank.says === "under_pin" ? "tag warn" : "tag", SAID[/** @type {keyof typeof SAID} */ (rank.says)]), ` ${rank.why} `);
    for (const line of rank.lines) {
      const jump = make("button", "quiet", "show", { type: "button", "aria-label": `Show line ${line}` });
      jump.addEventListener("click", () => show(line));
      why.append(jump);
    }
    row.append(make("th", "", rank.title, { scope: "row" }), why);
    body.append(row);
  }
  table.append(body);
  return table;
}

/** What an answer would be made with. @param {any} walk */
function abilities(walk) {
  const box = make("div", "stack tight");
  box.append(make("h3", "", walk.agent ? `${named(walk.agent)} answers with` : `If it answered, ${named(walk.meant)} would have`));
  const facts = make("dl", "facts");
  /** @param {string} name @param {string | Node} value */
  const fact = (name, value) => facts.append(make("dt", "", name), make("dd", "", value));
  const { model, abilities: has } = walk;
  if (model) fact("model", [model.model, ...model.fallback].join(", then ") + (model.because ? ` (${origin(model.because)})` : ""));
  if (has) {
    const offered = has.tools.filter((/** @type {any} */ right) => !right.refused).map((/** @type {any} */ right) => right.tool);
    const steps = make("ul", "plain");
    steps.append(make("li", "soft", `${has.tools.length} tools`));
    for (const step of walk.tools_left) steps.append(make("li", "", `${step.left} left after ${step.rule}${step.line ? `, line ${step.line}` : ""}: without ${step.taken.join(", ")}`));
    steps.append(make("li", "", offered.length ? `has ${offered.join(", ")}` : "has none"));
    fact("tools", steps);
    const readable = has.skills.readable.map((/** @type {any} */ right) => right.skill);
    const left = has.skills.left_out.map((/** @type {any} */ right) => `without ${right.skill}: ${right.reason}`);
    fact("skills", [readable.join(", ") || "none", ...left].join("; "));
    fact("memory", has.memory.on ? `recalls ${has.memory.recalls.join(", ") || "nothing by itself"}; saves for ${has.memory.saves_for}` : "off");
    const limits = has.budgets.filter((/** @type {any} */ limit) => limit.most !== null).map((/** @type {any} */ limit) => {
      const spent = limit.spent_today ?? limit.spent_this_month;
      return `${limit.limit} = ${limit.most}${spent === null || spent === undefined ? "" : ` (${spent} used)`}`;
    });
    fact("limits", limits.join("; ") || "none");
  }
  box.append(facts);
  return box;
}

/* What would change */

/** @param {any} outcome */
const who = (outcome) => named(outcome.agent);

/** @param {any} replay */
function showChanged(replay) {
  const { messages, changed } = replay;
  const many = messages === 1 ? "the last message" : `the last ${messages} messages`;
  const told = changed.length ? `${changed.length} of ${many} would end in another way:` : `Each of ${many} would end as it does now.`;
  const count = make("p", changed.length ? "" : "soft", messages ? told : "No message is kept to try the rules on.", { "data-count": String(changed.length), "data-messages": String(messages) });
  const list = make("ul", "changes");
  for (const change of changed) {
    const after = change.after.agent;
    const row = make("li", "", null, { "data-message": String(change.id), "data-place": change.place.id, "data-person": change.person ? change.person.id : "", "data-before": change.now.agent ? change.now.agent.id : "nobody", "data-after": after ? after.id : "nobody" });
    const pick = make("button", "quiet", change.path || named(change.place), { type: "button", title: "Show its way" });
    pick.addEventListener("click", () => pickMessage(change));
    const head = make("div", "row");
    head.append(pick, make("span", "soft", named(change.person, "")), make("time", "soft small", null, { "data-ago": String(Date.parse(change.at)) }));
    const move = make("div", "row");
    move.append(make("span", "tag", who(change.now)), "→", make("span", after ? "tag good" : "tag warn", who(change.after)), make("span", "soft small", change.after.why));
    row.append(head);
    if (change.text) row.append(make("div", "words", change.text));
    row.append(move);
    list.append(row);
  }
  changedBox.replaceChildren(count, list);
  freshen(changedBox);
}

/** @param {any} change */
function pickMessage(change) {
  const id = String(change.id);
  if (![...which.options].some((option) => option.value === id)) {
    const option = make("option", "", `${change.path || named(change.place)} · ${named(change.person, "")}`, { value: id });
    which.append(option);
  }
  which.value = id;
  follow();
  walkBox.scrollIntoView({ block: "nearest" });
}

/* Trying */

/** Answers to an older state of the page are not shown. */
let asked = 0;

async function attempt() {
  const mine = ++asked;
  const now = field.value;
  const edited = isEdited();
  const what = chosen();
  setUnsaved(edited);
  undo.disabled = !edited;
  save.disabled = true;
  keep.disabled = true;
  state.textContent = edited ? "Edited, not saved" : "config.toml";
  if (!what && !edited) {
    showProblems([]);
    changedBox.replaceChildren(make("p", "soft", "These are the rules that count."));
    return;
  }
  document.body.dataset.trying = "1";
  try {
    const told = await call("POST", "/api/v1/routes/what-if", { ...what, ...(edited ? { text: now } : {}) });
    if (mine !== asked) return;
    save.disabled = !edited || !told.ok;
    keep.disabled = !told.walk || told.walk.is_command;
    showProblems(told.problems);
    if (told.walk) showWalk(told.walk);
    else if (!told.ok) changedBox.replaceChildren(make("p", "soft", "The text has a problem, so it cannot be tried."));
    if (told.replay) showChanged(told.replay);
    else if (!edited) changedBox.replaceChildren(make("p", "soft", "These are the rules that count."));
  } catch (error) {
    if (mine === asked) walkBox.replaceChildren(make("p", "note bad", error instanceof Error ? error.message : String(error)));
  } finally {
    if (mine === asked) delete document.body.dataset.trying;
  }
}

let soon = 0;
function later() {
  clearTimeout(soon);
  save.disabled = true;
  document.body.dataset.trying = "1";
  soon = setTimeout(() => void attempt(), 250);
}

function follow() {
  madeUp.hidden = which.value !== "";
  void attempt();
}

/** @param {{ text: string, hash: string }} now */
function take(now) {
  ({ text: saved, hash } = now);
  field.value = saved;
  void attempt();
}

/** A refusal by what the file says now. @param {unknown} error */
function refused(error) {
  const facts = error instanceof Refused ? error.problem?.facts : null;
  if (facts?.problems) showProblems(facts.problems);
  if (facts?.current) toast("config.toml was changed meanwhile.", { bad: true, action: "Load it, without your edits", run: () => take(facts.current) });
  else tell(error);
}

message.addEventListener("input", (event) => {
  if (event.target !== which) later();
});
which.addEventListener("change", follow);
message.addEventListener("submit", (event) => {
  event.preventDefault();
  void attempt();
});
field.addEventListener("input", () => {
  number(new Set());
  later();
});
field.addEventListener("scroll", () => {
  gutter.scrollTop = field.scrollTop;
});
undo.addEventListener("click", () => {
  field.value = saved;
  void attempt();
});

find("#rules").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    take(await call("PUT", "/api/v1/config", { text: field.value }, { "if-match": `"${hash}"` }));
    toast("Saved. The rules count now.");
  } catch (error) {
    refused(error);
  }
});

keep.addEventListener("click", async () => {
  const edited = isEdited();
  keep.disabled = true;
  try {
    const kept = await call("POST", "/api/v1/routes/tests", { ...chosen(), ...(edited ? { text: field.value } : {}) }, edited ? {} : { "if-match": `"${hash}"` });
    if (kept.saved) take(kept);
    else {
      field.value = kept.text;
      void attempt();
    }
    show(kept.line, false);
    toast(kept.saved ? `Kept as a route test in line ${kept.line}.` : `Added in line ${kept.line}. Save keeps it.`);
  } catch (error) {
    refused(error);
    keep.disabled = false;
  }
});

for (const button of document.querySelectorAll("button[data-jump]")) {
  const list = button.getAttribute("data-jump") || "";
  button.addEventListener("click", () => {
    const line = lineOf(list);
    if (line) show(line);
    else toast(`config.toml has no [[${list}]] yet.`);
  });
}

field.value = saved;
number(new Set());
show(lineOf("bindings") || 1, false);
follow();
