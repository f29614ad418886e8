// Config: checks the text as it is edited, shows what differs from what runs, applies it and puts earlier texts back. The form
// changes the text, so that both always say the same.

import { around, ask, call, data, fetched, Refused, setUnsaved, tell, tellNext, toast } from "./app.js";

/** @type {{ text: string, hash: string }} */
const first = data("first");
const form = document.getElementById("config");

/** @template {Element} T @param {string} selector @returns {T} */
const find = (selector) => /** @type {T} */ (/** @type {unknown} */ (document.querySelector(selector)));

const field = /** @type {HTMLTextAreaElement} */ (find("#text"));
const save = /** @type {HTMLButtonElement} */ (find("#config button[type=submit]"));
const undo = /** @type {HTMLButtonElement} */ (find("#undo"));
const problems = /** @type {HTMLElement} */ (find("#problems"));
const diff = /** @type {HTMLElement} */ (find("#diff"));
let { text, hash } = first;
field.value = text;

/** Puts the cursor into a line. @param {number} line */
function goTo(line) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1] || "").length);
  field.scrollTop = Math.max(0, (line - 6) * 19);
}

/** @param {any} problem */
function told(problem) {
  const item = document.createElement("div");
  item.className = problem.severity === "error" ? "note bad" : "note warn";
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: `line ${problem.line}` });
  button.addEventListener("click", () => goTo(problem.line));
  const label = problem.label && problem.label !== problem.message ? `: ${problem.label}` : "";
  item.append(button, ` ${problem.message}${label}`);
  if (problem.help) item.append(Object.assign(document.createElement("p"), { className: "small", textContent: problem.help }));
  return item;
}

/** @param {any[]} found */
function tellProblems(found) {
  const good = Object.assign(document.createElement("p"), { className: "note good", textContent: "No problem." });
  problems.replaceChildren(...(found.length ? found.map(told) : [good]));
}

async function check() {
  const now = field.value;
  const changed = now !== text;
  setUnsaved(changed);
  undo.disabled = !changed;
  try {
    const [checked, compared] = await Promise.all([call("POST", "/api/v1/config/check", { text: now }), call("POST", "/api/v1/config/diff", { text: now })]);
    if (field.value !== now) return;
    tellProblems(checked.problems);
    save.disabled = !changed || !checked.ok;
    diff.textContent = around(compared.lines);
  } catch (error) {
    tell(error);
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let soon;
field.addEventListener("input", () => {
  clearTimeout(soon);
  save.disabled = true;
  setUnsaved(field.value !== text);
  soon = setTimeout(() => void check(), 300);
});

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await fetched("PUT", "/api/v1/config", { text: field.value }, { "if-match": `"${hash}"` });
    setUnsaved(false);
    tellNext("Applied. It counts now.");
    location.reload();
  } catch (error) {
    const current = error instanceof Refused && error.status === 412 ? error.problem?.facts?.current : null;
    if (!current) return tell(error);
    if (await ask({ title: "config.toml was changed meanwhile.", text: "Look at the differences from it, and apply again to write over them.", yes: "Show them" })) {
      ({ text, hash } = current);
      await check();
    }
  }
});

undo.addEventListener("click", () => {
  field.value = text;
  void check();
});

for (const button of document.querySelectorAll("button.look")) {
  button.addEventListener("click", async () => {
    try {
      const earlier = await call("GET", `/api/v1/config/history/${button.getAttribute("data-id")}`);
      if (await ask({ title: "Put this text into the editor?", code: earlier.text, yes: "Put in" })) {
        field.value = earlier.text;
        await check();
      }
    } catch (error) {
      tell(error);
    }
  });
}

for (const button of document.querySelectorAll("button.back")) {
  button.addEventListener("click", async () => {
    const path = `/api/v1/config/history/${button.getAttribute("data-id")}`;
    try {
      const [earlier, now] = [await call("GET", path), field.value];
      const compared = await call("POST", "/api/v1/config/diff", { text: earlier.text });
      if (!(await ask({ title: "Roll back to this text?", text: "It counts at once. The text of now becomes an earlier one.", code: around(compared.lines), yes: "Roll back" }))) return;
      if (now !== text && !(await ask({ title: "Roll back without your edits?", yes: "Roll back", danger: true }))) return;
      await call("POST", `${path}/restore`, undefined, { "if-match": `"${hash}"` });
      setUnsaved(false);
      tellNext("Rolled back. It counts now.");
      location.reload();
    } catch (error) {
      tell(error);
    }
  });
}

/** What a field says, in the kind of its setting. @param {string} kind @param {string} said */
function valueOf(kind, said) {
  const words = said.trim();
  const list = () => words.split(",").map((word) => word.trim()).filter(Boolean);
  if (kind === "list") return list();
  if (words === "") return null;
  if (kind === "text") return words;
  if (words === "true" || words === "false") return words === "true";
  const number = Number(words.replaceAll("_", ""));
  if (Number.isFinite(number)) return number;
  return words.startsWith("[") ? words.slice(1, -1).split(",").map((word) => word.trim().replaceAll('"', "")).filter(Boolean) : words;
}

/** @param {HTMLElement} setting @param {any} value */
async function change(setting, value) {
  try {
    const edited = await call("POST", "/api/v1/config/edit", { text: field.value, key: setting.dataset.key, value });
    field.value = edited.text;
    setting.classList.add("changed");
    toast(`${setting.dataset.key} is changed in the text. Apply it when you are done.`);
    await check();
  } catch (error) {
    tell(error);
  }
}

for (const setting of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".setting"))) {
  setting.addEventListener("change", (event) => {
    const control = event.target;
    if (control instanceof HTMLInputElement || control instanceof HTMLSelectElement) void change(setting, valueOf(setting.dataset.kind || "", control.value));
  });
  setting.querySelector(".unset")?.addEventListener("click", () => void change(setting, null));
  const line = setting.querySelector(".to-line");
  line?.addEventListener("click", () => goTo(Number(line.getAttribute("data-line"))));
}

/** Shows the sections with a setting that is called so. */
const filter = /** @type {HTMLInputElement} */ (find("#filter"));
filter.addEventListener("input", () => {
  const words = filter.value.trim().toLowerCase();
  for (const section of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details[data-section]"))) {
    let some = false;
    for (const setting of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll(".setting"))) {
      setting.hidden = !(setting.dataset.key || "").toLowerCase().includes(words);
      some ||= !setting.hidden;
    }
    section.hidden = !some;
    section.open = some && words.length > 1;
  }
});

const wanted = Number(new URLSearchParams(location.search).get("line"));
if (wanted > 0) goTo(wanted);
