// The chat: topics, messages as they come, commands, files, the agent of a topic.

import { ago, ask, call, data, freshen, tell, toast } from "./app.js";

/**
 * @typedef {{ id: string, name: string, emoji: string | null, label: string, hue: number }} Agent
 * @typedef {{ key: string, room: string, topic: string | null, name: string, agent: string, rule: string, last_at: number | null, last_text: string | null }} Place
 * @typedef {{ id: string, name: string, bytes: number, media_type: string }} File_
 * @typedef {{ label: string, command: string }} Button
 * @typedef {{ id: number, place: string, message: string, from: "person" | "agent" | "gateway", speaker: string | null, agent: string | null, html: string, text: string, buttons: Button[], files: File_[], at: number }} Message
 * @typedef {{ place: string, running: boolean, speaker: string | null, agent: string | null, html: string, remark: string | null }} Sight
 * @typedef {{ name: string, arguments: string, summary: string }} Command
 * @typedef {{ places: Place[], agents: Agent[], default_agent: string }} Chat
 */

/** @template {HTMLElement} T @param {string} id @returns {T} */
const get = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

const chat = get("chat");
const list = /** @type {HTMLOListElement} */ (get("messages"));
const scroller = get("scroller");
const form = /** @type {HTMLFormElement} */ (get("compose"));
const field = /** @type {HTMLTextAreaElement} */ (get("words"));
const stop = /** @type {HTMLButtonElement} */ (get("stop"));
const attached = get("attached");
const upload = /** @type {HTMLInputElement} */ (get("upload"));
const suggest = get("suggest");

/** @type {{ chat: Chat, messages: Message[], commands: Command[], place: string, newest: number, sights: Sight[] }} */
const first = data("first");
let { places, agents, default_agent: defaultAgent } = first.chat;
const commands = first.commands;
let here = first.place;
/** @type {Map<string, Sight>} */
const sights = new Map(first.sights.map((sight) => [sight.place, sight]));
/** @type {Set<string>} */
const unread = new Set();
/** @type {File_[]} */
let files = [];
/** @type {Message[]} */
let shown = [];
let hasEarlier = false;

/** @param {string | null} id */
const agentOf = (id) => agents.find((agent) => agent.id === id) || null;

/** @param {Agent | null} agent @param {string} fallback */
function mark(agent, fallback) {
  const span = document.createElement("span");
  span.className = `mark hue-${agent ? agent.hue : 7}`;
  span.setAttribute("aria-hidden", "true");
  span.textContent = (agent && (agent.emoji || agent.name.slice(0, 1))) || fallback;
  return span;
}

/** @param {string} tag @param {string} [name] @param {string} [text] */
function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** @returns {Place} */
function place() {
  const known = places.find((place) => place.key === here);
  if (known) return known;
  const [, room = "home", topic = null] = here.split(":");
  return { key: here, room, topic, name: topicNames.get(here) || topic || "Main", agent: drafts.get(here) || defaultAgent, rule: "", last_at: null, last_text: null };
}

/** Names and agents of topics that nobody has written in yet. */
/** @type {Map<string, string>} */
const topicNames = new Map();
/** @type {Map<string, string>} */
const drafts = new Map();

function showTopics() {
  const nav = get("topic-list");
  const rooms = new Map();
  const all = places.some((known) => known.key === here) ? places : [place(), ...places];
  for (const one of all) rooms.set(one.room, [...(rooms.get(one.room) || []), one]);
  nav.replaceChildren();
  for (const [room, topics] of rooms) {
    const section = make("section");
    if (rooms.size > 1) section.append(make("h2", "", room));
    const ul = make("ul");
    for (const one of topics) {
      const item = make("li");
      const link = /** @type {HTMLAnchorElement} */ (make("a", "topic"));
      link.href = `/chat?place=${encodeURIComponent(one.key)}`;
      link.dataset.place = one.key;
      if (one.key === here) link.setAttribute("aria-current", "page");
      const agent = agentOf(one.agent);
      link.append(mark(agent, "·"), make("b", "", one.name));
      if (sights.get(one.key)?.running) link.append(make("small", "", `${agent ? agent.name : "The agent"} is writing…`));
      else {
        if (unread.has(one.key)) {
          const dot = make("span", "dot");
          dot.setAttribute("title", "New");
          link.append(dot);
        } else if (one.last_at) {
          const time = make("time", "", ago(one.last_at));
          time.dataset.ago = String(one.last_at);
          link.append(time);
        } else link.append(make("span"));
        link.append(make("small", "", one.last_text || (agent ? `${agent.name} answers here` : "")));
      }
      item.append(link);
      ul.append(item);
    }
    section.append(ul);
    nav.append(section);
  }
}

function showHead() {
  const now = place();
  const agent = agentOf(now.agent);
  get("talk-mark").replaceWith(Object.assign(mark(agent, "·"), { id: "talk-mark" }));
  get("talk-title").textContent = now.name;
  get("talk-agent").textContent = agent ? agent.name : now.agent;
  get("talk-rule").textContent = now.rule && now.rule !== "default_agent" ? ` · ${now.rule}` : "";
  document.title = `${now.name} · ${agent ? agent.label : now.agent} · Parlor`;
  const picker = /** @type {HTMLSelectElement | null} */ (document.getElementById("agent-picker"));
  if (picker) picker.value = now.agent;
  const running = sights.get(here)?.running || false;
  stop.hidden = !running;
}

/** @param {Message} message @param {Message | undefined} before */
function item(message, before) {
  const agent = agentOf(message.agent);
  const li = make("li", `message ${message.from}`);
  li.dataset.id = String(message.id);
  const same = before && before.from === message.from && before.speaker === message.speaker && message.at - before.at < 300000;
  if (same) li.classList.add("follows");
  const name = message.from === "gateway" ? "Parlor" : message.from === "agent" ? (agent ? agent.name : message.speaker || "Agent") : message.speaker || "You";
  li.append(mark(agent, message.from === "gateway" ? "⌂" : name.slice(0, 1).toUpperCase()));
  const header = make("header");
  const time = make("time");
  time.dataset.at = String(message.at);
  time.dataset.form = "clock";
  header.append(make("b", "", name), time);
  li.append(header);
  const body = make("div", "body");
  if (message.html) {
    const prose = make("div", "prose");
    prose.innerHTML = message.html;
    body.append(prose);
  }
  if (message.files.length) body.append(fileList(message.files));
  if (message.buttons.length) {
    const row = make("div", "buttons");
    for (const button of message.buttons) {
      const element = /** @type {HTMLButtonElement} */ (make("button", "", button.label));
      element.type = "button";
      element.addEventListener("click", () => void say(button.command));
      row.append(element);
    }
    body.append(row);
  }
  li.append(body);
  freshen(li);
  return li;
}

/** @param {File_[]} all */
function fileList(all) {
  const row = make("div", "files");
  for (const file of all) {
    const link = /** @type {HTMLAnchorElement} */ (make("a"));
    link.href = `/api/v1/chat/files/${encodeURIComponent(file.id)}`;
    if (/^image\/(png|jpeg|gif|webp)$/.test(file.media_type)) {
      const image = /** @type {HTMLImageElement} */ (make("img"));
      image.src = link.href;
      image.alt = file.name;
      image.loading = "lazy";
      link.append(image);
    } else {
      link.className = "file";
      link.setAttribute("download", file.name);
      link.append(make("span", "", file.name), make("span", "soft small", size(file.bytes)));
    }
    row.append(link);
  }
  return row;
}

/** @param {number} bytes */
function size(bytes) {
  return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
const toEnd = () => {
  scroller.scrollTop = scroller.scrollHeight;
};

/** @param {Message[]} messages */
function showAll(messages) {
  shown = messages;
  list.replaceChildren();
  let before;
  let day = "";
  for (const message of messages) {
    const today = new Date(message.at).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
    if (today !== day) {
      const mark = make("li", "day", today);
      list.append(mark);
      day = today;
      before = undefined;
    }
    list.append(item(message, before));
    before = message;
  }
  get("greeting").hidden = messages.length > 0;
  get("earlier").hidden = !hasEarlier;
  showPreview();
  toEnd();
}

/** @param {Message} message */
function add(message) {
  if (shown.some((known) => known.id === message.id)) return;
  const end = atEnd();
  list.querySelector(`[data-pending="${CSS.escape(message.message)}"]`)?.remove();
  const preview = list.querySelector(".preview");
  const element = item(message, shown.at(-1));
  if (preview && message.from === "agent") preview.remove();
  const left = list.querySelector(".preview");
  if (left) left.before(element);
  else list.append(element);
  shown.push(message);
  get("greeting").hidden = true;
  if (end || message.from === "person") toEnd();
}

function showPreview() {
  const end = atEnd();
  const sight = sights.get(here);
  let element = list.querySelector(".preview");
  if (!sight || !sight.running) {
    element?.remove();
    showHead();
    return;
  }
  if (!element) {
    element = make("li", "message agent preview");
    const agent = agentOf(sight.agent || place().agent);
    const header = make("header");
    header.append(make("b", "", agent ? agent.name : "Agent"));
    const body = make("div", "body");
    body.append(make("div", "prose"));
    element.append(mark(agent, "·"), header, body);
    list.append(element);
  }
  const prose = element.querySelector(".prose");
  if (prose instanceof HTMLElement) {
    if (sight.html) prose.innerHTML = sight.html;
    else prose.textContent = sight.remark || "";
  }
  showHead();
  if (end) toEnd();
}

/** @param {string} key @param {boolean} [push] */
async function go(key, push = true) {
  here = key;
  unread.delete(key);
  chat.classList.remove("choosing");
  if (push) history.pushState({ place: key }, "", `/chat?place=${encodeURIComponent(key)}`);
  showHead();
  showTopics();
  list.replaceChildren();
  try {
    const answer = await call("GET", `/api/v1/chat/messages?place=${encodeURIComponent(key)}&limit=60`);
    if (here !== key) return;
    hasEarlier = answer.has_more;
    showAll(answer.messages);
  } catch (error) {
    tell(error);
  }
  field.focus();
}

/** Sends words; a draft topic gets its agent first. @param {string} text @param {File_[]} [sent] */
async function say(text, sent = []) {
  const key = here;
  const wanted = drafts.get(key);
  const name = topicNames.get(key) || null;
  const id = crypto.randomUUID();
  const pending = make("li", "message person");
  pending.dataset.pending = id;
  const body = make("div", "body soft", text || sent.map((file) => file.name).join(", "));
  pending.append(make("span", "mark"), body);
  list.append(pending);
  toEnd();
  try {
    await call("POST", "/api/v1/chat/messages", { place: key, id, text, files: sent.map((file) => file.id), topic_name: name, agent: wanted || null });
    drafts.delete(key);
    topicNames.delete(key);
  } catch (error) {
    pending.remove();
    if (!field.value) field.value = text;
    tell(error);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = field.value.trim();
  if (!text && !files.length) return;
  const sent = files;
  files = [];
  field.value = "";
  hideSuggest();
  showAttached();
  void say(text, sent);
});

stop.addEventListener("click", () => void say("/stop"));

field.addEventListener("keydown", (event) => {
  if (!suggest.hidden && moveSuggest(event)) return;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// Commands as they are typed.
let chosen = 0;
/** @type {{ insert: string, label: string, about: string }[]} */
let offers = [];

function offersFor(/** @type {string} */ text) {
  const agent = /^\/agent\s+(\S*)$/.exec(text);
  if (agent) return agents.filter((one) => one.id.startsWith((agent[1] || "").toLowerCase())).map((one) => ({ insert: `/agent ${one.id}`, label: one.label, about: one.id }));
  const command = /^\/(\w*)$/.exec(text);
  if (!command) return [];
  return commands.filter((one) => one.name.startsWith((command[1] || "").toLowerCase())).map((one) => ({ insert: `/${one.name}${one.arguments ? " " : ""}`, label: `/${one.name} ${one.arguments}`.trim(), about: one.summary }));
}

function showSuggest() {
  offers = offersFor(field.value);
  chosen = Math.min(chosen, Math.max(0, offers.length - 1));
  suggest.hidden = offers.length === 0;
  field.setAttribute("aria-expanded", String(offers.length > 0));
  suggest.replaceChildren();
  offers.forEach((offer, number) => {
    const option = make("div");
    option.id = `offer-${number}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", String(number === chosen));
    option.append(make("code", "", offer.label), make("span", "", offer.about));
    option.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(number);
    });
    suggest.append(option);
  });
  if (offers.length) field.setAttribute("aria-activedescendant", `offer-${chosen}`);
  else field.removeAttribute("aria-activedescendant");
  suggest.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
}

function hideSuggest() {
  suggest.hidden = true;
  chosen = 0;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

/** @param {number} number */
function take(number) {
  const offer = offers[number];
  if (offer) field.value = offer.insert;
  hideSuggest();
  showSuggest();
  field.focus();
}

/** @param {KeyboardEvent} event */
function moveSuggest(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    chosen = (chosen + (event.key === "ArrowDown" ? 1 : offers.length - 1)) % offers.length;
    showSuggest();
    return true;
  }
  if (event.key === "Escape") {
    hideSuggest();
    return true;
  }
  const offer = offers[chosen];
  if ((event.key === "Tab" || event.key === "Enter") && offer && offer.insert.trim() !== field.value.trim()) {
    event.preventDefault();
    take(chosen);
    return true;
  }
  return false;
}

field.addEventListener("input", showSuggest);
field.addEventListener("blur", () => setTimeout(hideSuggest, 100));

// Files.
function showAttached() {
  attached.replaceChildren();
  for (const file of files) {
    const chip = make("span", "file");
    const remove = /** @type {HTMLButtonElement} */ (make("button", "quiet", "×"));
    remove.type = "button";
    remove.setAttribute("aria-label", `Leave out ${file.name}`);
    remove.addEventListener("click", () => {
      files = files.filter((known) => known !== file);
      showAttached();
    });
    chip.append(make("span", "", file.name), make("span", "soft small", size(file.bytes)), remove);
    attached.append(chip);
  }
}

/** @param {Iterable<File>} chosen */
async function attach(chosen) {
  for (const file of chosen) {
    try {
      files.push(await call("POST", `/api/v1/chat/files?name=${encodeURIComponent(file.name)}`, file, { "content-type": "application/octet-stream" }));
      showAttached();
    } catch (error) {
      tell(error);
    }
  }
}

get("attach").addEventListener("click", () => upload.click());
upload.addEventListener("change", () => {
  void attach(upload.files || []);
  upload.value = "";
});
chat.addEventListener("dragover", (event) => event.preventDefault());
chat.addEventListener("drop", (event) => {
  event.preventDefault();
  void attach(event.dataTransfer?.files || []);
});
field.addEventListener("paste", (event) => {
  const pasted = event.clipboardData?.files;
  if (pasted?.length) void attach(pasted);
});

// Topics and agents.
get("topic-list").addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[data-place]") : null;
  if (!(link instanceof HTMLAnchorElement) || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  void go(link.dataset.place || here);
});
addEventListener("popstate", () => void go(new URLSearchParams(location.search).get("place") || first.place, false));
get("topics-toggle").addEventListener("click", () => chat.classList.toggle("choosing"));

document.getElementById("agent-picker")?.addEventListener("change", (event) => {
  const picker = /** @type {HTMLSelectElement} */ (event.target);
  if (drafts.has(here) || !places.some((known) => known.key === here)) {
    drafts.set(here, picker.value);
    showHead();
    showTopics();
    return;
  }
  void say(`/agent ${picker.value}`);
});

/** A name as a part of a key. @param {string} name */
function slug(name) {
  const plain = name.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40);
  return plain || `topic-${Date.now().toString(36)}`;
}

const dialog = /** @type {HTMLDialogElement} */ (get("new-topic"));
get("new").addEventListener("click", () => {
  const agent = /** @type {HTMLSelectElement | null} */ (document.getElementById("new-agent"));
  // A new topic begins with the agent of the one that is looked at.
  if (agent) agent.value = place().agent;
  dialog.showModal();
});
get("new-cancel").addEventListener("click", () => dialog.close());
get("new-form").addEventListener("submit", () => {
  const input = /** @type {HTMLInputElement} */ (get("new-name"));
  const agent = /** @type {HTMLSelectElement | null} */ (document.getElementById("new-agent"));
  const name = input.value.trim();
  if (!name) return;
  const key = `web:${place().room}:${slug(name)}`;
  input.value = "";
  if (!places.some((known) => known.key === key)) {
    topicNames.set(key, name);
    drafts.set(key, agent ? agent.value : defaultAgent);
  }
  void go(key);
});

get("earlier").addEventListener("click", async () => {
  const oldest = shown[0];
  if (!oldest) return;
  try {
    const answer = await call("GET", `/api/v1/chat/messages?place=${encodeURIComponent(here)}&before=${oldest.id}&limit=60`);
    hasEarlier = answer.has_more;
    const height = scroller.scrollHeight;
    showAll([...answer.messages, ...shown]);
    scroller.scrollTop = scroller.scrollHeight - height;
  } catch (error) {
    tell(error);
  }
});

get("renew").addEventListener("click", async () => {
  if (await ask({ title: "Begin a new conversation?", text: "The agent forgets what was said here; its memory and the messages on the screen stay.", yes: "Begin anew" })) void say("/new");
});

// Events.
let refreshing = false;
async function refresh() {
  if (refreshing) return;
  refreshing = true;
  try {
    /** @type {Chat} */
    const now = await call("GET", "/api/v1/chat/places");
    const before = place().agent;
    ({ places, agents, default_agent: defaultAgent } = now);
    for (const known of places) drafts.delete(known.key);
    showTopics();
    showHead();
    const after = agentOf(place().agent);
    if (before !== place().agent && after) toast(`${after.label} answers here now.`);
  } catch {
    // The next event tries again.
  }
  refreshing = false;
}

let soon = 0;
function refreshSoon() {
  clearTimeout(soon);
  soon = setTimeout(() => void refresh(), 150);
}

let newest = first.newest;
function listen() {
  const events = new EventSource(`/api/v1/chat/events?after=${newest}`);
  const line = get("offline");
  events.addEventListener("open", () => {
    line.hidden = true;
  });
  events.addEventListener("message", (event) => {
    newest = Number(event.lastEventId) || newest;
    /** @type {Message} */
    const message = JSON.parse(event.data);
    if (message.place === here) add(message);
    else if (message.from !== "person") unread.add(message.place);
    refreshSoon();
  });
  events.addEventListener("sight", (event) => {
    /** @type {Sight} */
    const sight = JSON.parse(event.data);
    const wasRunning = sights.get(sight.place)?.running || false;
    sights.set(sight.place, sight);
    if (sight.place === here) showPreview();
    if (wasRunning !== sight.running) showTopics();
  });
  events.addEventListener("places", refreshSoon);
  events.addEventListener("error", async () => {
    line.hidden = false;
    if (events.readyState !== EventSource.CLOSED) return;
    events.close();
    const known = await fetch("/api/v1/whoami", { credentials: "same-origin" }).catch(() => null);
    if (known?.status === 401) line.textContent = "You are signed out. `parlor dashboard` gives a new link.";
    else setTimeout(listen, 2000);
  });
}

showTopics();
showHead();
hasEarlier = first.messages.length >= 60;
showAll(first.messages);
listen();
field.focus();
