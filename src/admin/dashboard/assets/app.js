// The shell of every page: the menu, the choice of an agent, times, notices, and the way to the API.

/** The token that writes carry is a header of our own: no form of another site can send one. */
const HEADERS = { "x-parlor": "1" };

/**
 * A problem as the API tells it.
 */
export class Refused extends Error {
  /** @param {number} status @param {string} text @param {any} problem */
  constructor(status, text, problem) {
    super(text);
    this.status = status;
    this.problem = problem;
  }
}

/**
 * Calls the API. Throws `Refused` with a sentence for people.
 * @param {string} method
 * @param {string} path
 * @param {any} [body] an object is sent as JSON, a Blob as it is
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, headers) {
  return (await fetched(method, path, body, headers)).value;
}

/**
 * The same, with the tag of the state for `If-Match` of a later change.
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{ value: any, tag: string }>}
 */
export async function fetched(method, path, body, headers) {
  /** @type {Record<string, string>} */
  const all = { accept: "application/json", ...HEADERS, ...headers };
  /** @type {BodyInit | undefined} */
  let sent;
  if (body instanceof Blob) sent = body;
  else if (body !== undefined) {
    sent = JSON.stringify(body);
    all["content-type"] = "application/json";
  }
  const answer = await fetch(path, { method, headers: all, body: sent, credentials: "same-origin" });
  const text = await answer.text();
  /** @type {any} */
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = null;
  }
  if (!answer.ok) {
    const told = value && (value.detail || value.title);
    throw new Refused(answer.status, told || `The gateway answered with ${answer.status}.`, value);
  }
  return { value, tag: answer.headers.get("etag") || "" };
}

/**
 * Shows a short notice, with one thing to do.
 * @param {string} text
 * @param {{ bad?: boolean, action?: string, run?: () => void }} [options]
 */
export function toast(text, options = {}) {
  const list = document.getElementById("toasts");
  if (!list) return;
  const item = document.createElement("div");
  item.className = options.bad ? "toast bad" : "toast";
  const words = document.createElement("span");
  words.textContent = text;
  item.append(words);
  if (options.action && options.run) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = options.action;
    const run = options.run;
    button.addEventListener("click", () => {
      item.remove();
      run();
    });
    item.append(button);
  }
  list.append(item);
  setTimeout(() => item.remove(), options.action ? 12000 : 5000);
}

/** @param {unknown} error */
export function tell(error) {
  toast(error instanceof Error ? error.message : String(error), { bad: true });
}

/**
 * How long ago, in few characters.
 * @param {number} ms
 */
export function ago(ms) {
  const seconds = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (seconds < 60) return "now";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  if (hours < 24) return `${hours} h`;
  const days = Math.round(hours / 24);
  if (days < 14) return `${days} d`;
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** Writes times as people read them: `<time data-ago="1700000000000">`. */
export function freshen(/** @type {ParentNode} */ root = document) {
  for (const time of root.querySelectorAll("time[data-ago]")) {
    const ms = Number(time.getAttribute("data-ago"));
    time.textContent = ago(ms);
    time.setAttribute("title", new Date(ms).toLocaleString());
  }
  for (const time of root.querySelectorAll("time[data-at]")) {
    const ms = Number(time.getAttribute("data-at"));
    const form = time.getAttribute("data-form");
    const date = new Date(ms);
    time.textContent = form === "clock" ? date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }) : date.toLocaleString();
    time.setAttribute("title", date.toLocaleString());
  }
}

/**
 * @typedef {{ title: string, text?: string, code?: string, yes: string, danger?: boolean, field?: string, value?: string, pattern?: string }} Question
 */

/**
 * Asks before a change; resolves to false when the person thinks better of it.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export async function ask(question) {
  return (await askFor(question)) !== null;
}

/**
 * Asks for a word, where the question has a field. Null when the person thinks better of it.
 * @param {Question} question
 * @returns {Promise<string | null>}
 */
export function askFor(question) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-label", question.title);
    const form = document.createElement("form");
    form.method = "dialog";
    form.className = "stack";
    /** @param {string} tag @param {string | undefined} text */
    const add = (tag, text) => {
      if (text) form.append(Object.assign(document.createElement(tag), { textContent: text }));
    };
    add("h2", question.title);
    add("p", question.text);
    add("pre", question.code);
    // Long lines are scrolled by keyboard too.
    form.querySelector("pre")?.setAttribute("tabindex", "0");
    const input = document.createElement("input");
    if (question.field) {
      const label = document.createElement("label");
      label.className = "field";
      Object.assign(input, { type: "text", required: true, value: question.value || "", autocomplete: "off" });
      if (question.pattern) input.pattern = question.pattern;
      label.append(Object.assign(document.createElement("span"), { textContent: question.field }), input);
      form.append(label);
    }
    const row = document.createElement("div");
    row.className = "row end";
    const no = Object.assign(document.createElement("button"), { type: "button", textContent: "Cancel" });
    const yes = Object.assign(document.createElement("button"), { type: "submit", className: question.danger ? "danger" : "main", textContent: question.yes });
    row.append(no, yes);
    form.append(row);
    dialog.append(form);
    /** @type {string | null} */
    let answer = null;
    no.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => {
      answer = input.value.trim();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    (question.field ? input : yes).focus();
  });
}

/**
 * The data that a page brought along.
 * @param {string} id
 * @returns {any}
 */
export function data(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent || "null") : null;
}

/** Lines that differ, with two lines around each. @param {string[]} lines */
export function around(lines) {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - 2), at + 3).some((line) => !line.startsWith(" ")));
  const kept = lines.flatMap((line, at) => (near[at] ? [line] : near[at - 1] ? ["…"] : []));
  return kept.join("\n") || "Nothing.";
}

/** Edits that would be lost. */
let unsaved = false;

/** @param {boolean} is */
export function setUnsaved(is) {
  unsaved = is;
}

addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const link = target && target.closest("a[href]");
  if (!unsaved || !(link instanceof HTMLAnchorElement) || link.target || event.defaultPrevented) return;
  event.preventDefault();
  if (await ask({ title: "Leave without saving?", text: "Your edits on this page are not saved.", yes: "Leave", danger: true })) {
    unsaved = false;
    location.href = link.href;
  }
});

/** A sentence for the page that comes next. @param {string} text */
export function tellNext(text) {
  sessionStorage.setItem("told", text);
}

/** Words of an answer in their places: `{file}`. @param {string} text @param {any} value */
const filled = (text, value) => text.replace(/\{(\w+)\}/g, (_, name) => String(value?.[name] ?? ""));

/**
 * A button or a choice that calls the API: `data-call="POST /api/v1/…"`. `data-ask` asks first, with what will happen in
 * `data-text`; `data-field` asks for the word `data-key` of the body; `data-tag` is the state that the change is made from.
 * @param {HTMLButtonElement | HTMLSelectElement} control
 */
async function carryOut(control) {
  const { call: to = "", ask: title, text, field, key, tag, told, then } = control.dataset;
  const [method = "POST", path = ""] = to.split(" ");
  let body = control.dataset.body ? JSON.parse(control.dataset.body) : undefined;
  let word = control instanceof HTMLSelectElement ? control.value : "";
  if (title) {
    const yes = control instanceof HTMLButtonElement ? control.textContent || "Yes" : "Change";
    const answer = await askFor({ title, text, yes, danger: control.classList.contains("danger"), field, value: control.dataset.value, pattern: control.dataset.pattern });
    if (answer === null) return false;
    word = field ? answer : word;
  }
  if (key) body = { ...body, [key]: word };
  control.disabled = true;
  try {
    const answer = await call(method, path, body, tag ? { "if-match": tag } : undefined);
    unsaved = false;
    if (told) tellNext(filled(told, answer));
    if (then) location.href = filled(then, answer);
    else location.reload();
    return true;
  } catch (error) {
    tell(error);
    control.disabled = false;
    return false;
  }
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = target && target.closest("button[data-call]");
  if (button instanceof HTMLButtonElement) void carryOut(button);
});

document.addEventListener("change", async (event) => {
  const select = event.target;
  if (!(select instanceof HTMLSelectElement) || !select.dataset.call) return;
  const was = [...select.options].find((option) => option.defaultSelected);
  if (!(await carryOut(select)) && was) select.value = was.value;
});

function main() {
  const side = document.getElementById("side");
  const toggle = document.getElementById("menu-toggle");
  if (side && toggle) {
    toggle.addEventListener("click", () => {
      const open = side.classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(open));
    });
  }
  for (const select of document.querySelectorAll("select[data-goes]")) {
    select.addEventListener("change", () => {
      if (select instanceof HTMLSelectElement && select.form) select.form.requestSubmit();
    });
  }
  const told = sessionStorage.getItem("told");
  if (told) {
    sessionStorage.removeItem("told");
    toast(told);
  }
  freshen();
  setInterval(() => freshen(), 30000);
}

main();
