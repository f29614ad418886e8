// The editor of an agent: who it is, its model, skills, tools, limits and files. Edits that are not saved are asked about before they are lost.

import { around, ask, call, data, fetched, Refused, setUnsaved, tell, tellNext, toast } from "./app.js";

/** @type {{ id: string, can_edit: boolean }} */
const first = data("first");
const path = `/api/v1/agents/${encodeURIComponent(first.id)}`;

/** @template {Element} T @param {string} selector @returns {T} */
const find = (selector) => /** @type {T} */ (/** @type {unknown} */ (document.querySelector(selector)));

/** The parts of the page with edits. @type {(() => boolean)[]} */
const changes = [];
const look = () => setUnsaved(changes.some((changed) => changed()));

/** The state that a change is made from, and its tag. @type {any} */
let known = {};
let tag = "";

/** @param {{ value: any, tag: string }} now */
function remember(now) {
  ({ value: known, tag } = now);
  for (const button of document.querySelectorAll("button[data-tag]")) /** @type {HTMLElement} */ (button).dataset.tag = tag;
}

const read = () => fetched("GET", path);

/** What an agent has under a key of an edit, as text. @param {any} agent @param {string} key */
function held(agent, key) {
  const limits = () => Object.fromEntries((agent.limits || []).map((/** @type {any} */ one) => [one.limit, one.most]));
  const value = key === "limits" ? limits() : key === "tools" ? agent.listed_tools : key === "skills" ? agent.listed_skills : agent[key];
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}

/**
 * Changes keys of the agent. A state that others changed elsewhere is no reason to ask: only the same keys are.
 * @param {Record<string, any>} edit
 */
async function patch(edit) {
  try {
    remember(await fetched("PATCH", path, edit, { "if-match": tag }));
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 412) throw error;
    const [before, now] = [known, await read()];
    const other = Object.keys(edit).filter((key) => held(now.value, key) !== held(before, key));
    const told = other.map((key) => `${key}: ${held(now.value, key)}`).join("\n");
    if (other.length && !(await ask({ title: "Somebody else changed this meanwhile.", text: "Write your values over theirs?", code: told, yes: "Write mine" }))) return false;
    remember(await fetched("PATCH", path, edit, { "if-match": now.tag }));
  }
  return true;
}

/** A problem of the edited config.toml. @param {any} problem */
function problemNote(problem) {
  const note = document.createElement("div");
  note.className = problem.severity === "error" ? "note bad" : "note warn";
  const label = problem.label && problem.label !== problem.message ? `: ${problem.label}` : "";
  note.append(`${problem.message}${label}`);
  if (problem.help) note.append(Object.assign(document.createElement("p"), { className: "small", textContent: problem.help }));
  return note;
}

/** Keeps what brings the file back, for the page that comes next. */
async function keepUndo() {
  const [history, config] = [await call("GET", "/api/v1/config/history"), await fetched("GET", "/api/v1/config")];
  sessionStorage.setItem("undo-edit", JSON.stringify({ id: history.items[0]?.id, tag: config.tag }));
}

function offerUndo() {
  const kept = JSON.parse(sessionStorage.getItem("undo-edit") || "null");
  sessionStorage.removeItem("undo-edit");
  if (!kept?.id) return;
  const run = async () => {
    try {
      await call("POST", `/api/v1/config/history/${kept.id}/restore`, undefined, { "if-match": kept.tag });
      tellNext("Taken back. config.toml is as it was.");
      location.reload();
    } catch (error) {
      tell(error);
    }
  };
  toast("Saved. It counts from the next answer on.", { action: "Undo", run });
}

/**
 * A form whose lines are shown before they are written to config.toml.
 * @param {string} selector
 * @param {(form: HTMLFormElement) => Record<string, any>} values what the form says
 * @param {(now: Record<string, any>, saved: Record<string, any>) => Record<string, any>} [edit] the keys to send; without it, those that differ
 */
function reviewed(selector, values, edit) {
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector(selector));
  const save = form?.querySelector("button[type=submit]");
  const problems = form?.querySelector(".problems");
  if (!form || !problems || !(save instanceof HTMLButtonElement)) return;
  const saved = values(form);
  const differing = () => {
    const now = values(form);
    return Object.fromEntries(Object.entries(now).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(saved[key])));
  };
  const changed = () => Object.keys(differing()).length > 0;
  const show = () => {
    save.disabled = !changed();
    look();
  };
  changes.push(changed);
  form.addEventListener("input", () => {
    problems.replaceChildren();
    show();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sent = edit ? edit(differing(), saved) : differing();
    try {
      const seen = await call("POST", `${path}/preview`, sent);
      problems.replaceChildren(...seen.problems.map(problemNote));
      if (!seen.ok) return;
      if (!seen.changes) return toast("config.toml says so already.");
      if (!(await ask({ title: "Write these lines to config.toml?", code: around(seen.lines), yes: "Write" }))) return;
      if (!(await patch(sent))) return;
      await keepUndo();
      setUnsaved(false);
      location.reload();
    } catch (error) {
      tell(error);
    }
  });
  show();
}

/** @param {HTMLFormElement} form @param {string} name */
const word = (form, name) => String(new FormData(form).get(name) || "").trim();

function model() {
  reviewed("#model", (form) => ({
    model: word(form, "model") || null,
    fallback: word(form, "fallback").split(",").map((one) => one.trim()).filter(Boolean),
  }), (now) => (now.fallback?.length === 0 ? { ...now, fallback: null } : now));
}

function tools() {
  /** @param {HTMLFormElement} form */
  const lists = (form) => {
    const boxes = [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name=tool]"))];
    const named = (/** @type {boolean} */ ticked) => boxes.filter((box) => box.checked === ticked).map((box) => box.value);
    const denied = named(false);
    return word(form, "list") === "allow" ? { allow: named(true), deny: null } : { allow: null, deny: denied.length ? denied : null };
  };
  reviewed("#tools", (form) => {
    const risk = { tools: lists(form), max_risk: word(form, "max_risk") || null };
    return form.querySelector("[name=risk_profile]") ? { ...risk, risk_profile: word(form, "risk_profile") || null } : risk;
  });
}

function limits() {
  reviewed(
    "#limits",
    (form) => Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value === "" ? null : Number(value)])),
    (now) => ({ limits: now }),
  );
}

function identity() {
  const form = /** @type {HTMLFormElement} */ (find("#identity"));
  const save = /** @type {HTMLButtonElement | null} */ (form.querySelector("button[type=submit]"));
  /** @returns {Record<string, string>} */
  const fields = () => Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
  let saved = fields();
  const changed = () => JSON.stringify(fields()) !== JSON.stringify(saved);
  const show = () => {
    if (save) save.disabled = !changed();
    look();
  };
  changes.push(changed);
  form.addEventListener("input", show);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const now = fields();
    /** @type {Record<string, string | null>} */
    const edit = {};
    for (const [name, value] of Object.entries(now)) if (value !== saved[name]) edit[name] = value || null;
    try {
      if (await patch(edit)) {
        saved = now;
        toast("Saved. It counts from the next answer on.");
      }
      show();
    } catch (error) {
      tell(error);
    }
  });
}

function skills() {
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector("#skills"));
  const whole = /** @type {HTMLInputElement | null | undefined} */ (form?.querySelector("[name=whole]"));
  if (!form || !whole) return;
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name=skill]"));
  const show = () => {
    for (const box of boxes) box.disabled = whole.checked;
  };
  whole.addEventListener("input", show);
  show();
  reviewed("#skills", () => ({ skills: whole.checked ? null : [...boxes].filter((box) => box.checked).map((box) => box.value) }));
}

function files() {
  const chooser = /** @type {HTMLSelectElement} */ (find("#file"));
  const text = /** @type {HTMLTextAreaElement} */ (find("#file-text"));
  const save = /** @type {HTMLButtonElement | null} */ (document.querySelector("#file-form button[type=submit]"));
  const remove = /** @type {HTMLButtonElement | null} */ (document.querySelector("#file-remove"));
  const note = /** @type {HTMLElement} */ (find("#file-note"));
  const inherited = /** @type {HTMLElement} */ (find("#inherited"));
  let file = new URLSearchParams(location.search).get("file") || chooser.value;
  let base = "";
  let kept = "";
  const changed = () => text.value !== kept;
  const update = () => {
    if (save) save.disabled = !changed();
    look();
  };
  changes.push(changed);
  text.addEventListener("input", update);

  /** @param {any} now */
  const show = (now) => {
    base = now.hash;
    text.value = now.text;
    // A text field may write line ends in its own way.
    kept = text.value;
    const own = now.origin === "own";
    if (remove) remove.hidden = !own || now.inherited === null;
    note.textContent = own ? "" : now.text ? "Inherited from the home folder; saving makes a file of its own." : "There is no such file yet.";
    inherited.hidden = !own || !now.inherited;
    const pre = inherited.querySelector("pre");
    if (pre) pre.textContent = now.inherited || "";
    update();
  };

  /** @param {string} name */
  const open = async (name) => {
    try {
      show(await call("GET", `${path}/files/${encodeURIComponent(name)}`));
      file = name;
      chooser.value = name;
    } catch (error) {
      tell(error);
    }
  };

  chooser.addEventListener("change", async () => {
    const wanted = chooser.value;
    if (changed() && !(await ask({ title: `Leave ${file} without saving?`, yes: "Leave", danger: true }))) {
      chooser.value = file;
      return;
    }
    await open(wanted);
  });

  find("#file-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      show(await call("PUT", `${path}/files/${encodeURIComponent(file)}`, { text: text.value, base }));
      toast(`${file} is saved. It counts from the next answer on.`);
    } catch (error) {
      const current = error instanceof Refused && error.status === 409 ? error.problem?.facts?.current : null;
      if (!current) return tell(error);
      if (await ask({ title: `${file} was changed meanwhile.`, text: "Write your text over this one?", code: current.text, yes: "Write mine" })) {
        base = current.hash;
        save?.click();
      }
    }
  });

  remove?.addEventListener("click", async () => {
    if (!(await ask({ title: `Delete the agent's own ${file}?`, text: "The inherited text counts then.", yes: "Delete", danger: true }))) return;
    try {
      show(await call("DELETE", `${path}/files/${encodeURIComponent(file)}`));
    } catch (error) {
      tell(error);
    }
  });

  void open(file);
}

identity();
model();
skills();
tools();
limits();
files();
offerUndo();
void read().then(remember).catch(tell);
