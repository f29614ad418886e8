// The house: gives a place to another agent, by drag or by menu, and takes it back.

import { call, data, tell, toast } from "./app.js";

/** @type {{ agents: { id: string, label: string }[] }} */
const first = data("first");

/** @param {string} id */
const label = (id) => first.agents.find((agent) => agent.id === id)?.label || id;

/** @typedef {"pin" | "binding"} Way */

/**
 * @param {string} place @param {string} agent @param {Way} way
 * @returns {string} what is written
 */
function written(place, agent, way) {
  return way === "pin" ? `/agent ${agent}    in ${place}` : `[[bindings]]\nmatch = "${place}"\nagent = "${agent}"`;
}

/** Gives a place away. @param {string} place @param {string} agent @param {Way} way */
async function give(place, agent, way) {
  try {
    const before = await call("PUT", `/api/v1/house/places/${encodeURIComponent(place)}`, { agent, way });
    remember(`${label(agent)} answers in ${name(place)} now.`, { place, undo: before.undo });
    location.reload();
  } catch (error) {
    tell(error);
  }
}

/** What can be undone survives the reload. @param {string} text @param {any} undo */
function remember(text, undo) {
  sessionStorage.setItem("house-undo", JSON.stringify({ text, undo }));
}

function offerUndo() {
  const kept = sessionStorage.getItem("house-undo");
  if (!kept) return;
  sessionStorage.removeItem("house-undo");
  const { text, undo } = JSON.parse(kept);
  toast(text, {
    action: "Undo",
    run: async () => {
      try {
        await call("PUT", `/api/v1/house/places/${encodeURIComponent(undo.place)}`, undo.undo);
        location.reload();
      } catch (error) {
        tell(error);
      }
    },
  });
}

/** @param {string} place */
const name = (place) => document.querySelector(`[data-place="${CSS.escape(place)}"]`)?.getAttribute("data-name") || place;

/** Asks how, and shows what is written. @param {HTMLElement} row @param {string} [wanted] */
function choose(row, wanted) {
  const place = row.dataset.place || "";
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", `Give ${name(place)} to an agent`);
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "stack";
  form.innerHTML = `<h2></h2>
    <label class="field"><span>Agent</span><select name="agent"></select></label>
    <fieldset class="stack tight plain"><legend class="sr">How</legend>
      <label class="row"><input type="radio" name="way" value="pin"> <span>Pin it, as /agent does in the chat</span></label>
      <label class="row"><input type="radio" name="way" value="binding"> <span>Write a binding into config.toml</span></label>
    </fieldset>
    <pre></pre>
    <div class="row end"><button type="button" class="take-back">Let the rules decide</button><span class="grow"></span><button type="button" class="cancel">Cancel</button><button type="submit" class="main">Give</button></div>`;
  const heading = /** @type {HTMLElement} */ (form.querySelector("h2"));
  heading.textContent = name(place);
  const select = /** @type {HTMLSelectElement} */ (form.querySelector("select"));
  for (const agent of first.agents) {
    const option = document.createElement("option");
    option.value = agent.id;
    option.textContent = agent.label;
    select.append(option);
  }
  select.value = wanted || row.dataset.agent || "";
  const radios = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input[type=radio]"));
  const preset = row.dataset.how === "own" ? "binding" : "pin";
  for (const radio of radios) radio.checked = radio.value === preset;
  const code = /** @type {HTMLElement} */ (form.querySelector("pre"));
  /** @returns {Way} */
  const way = () => ([...radios].find((radio) => radio.checked)?.value === "binding" ? "binding" : "pin");
  const show = () => {
    code.textContent = written(place, select.value, way());
  };
  form.addEventListener("input", show);
  show();
  const back = /** @type {HTMLButtonElement} */ (form.querySelector(".take-back"));
  back.hidden = row.dataset.how !== "pin" && row.dataset.how !== "own";
  back.addEventListener("click", async () => {
    dialog.close();
    try {
      const before = await call("PUT", `/api/v1/house/places/${encodeURIComponent(place)}`, { agent: null, way: row.dataset.how === "own" ? "binding" : "pin" });
      remember(`The rules decide in ${name(place)} now.`, { place, undo: before.undo });
      location.reload();
    } catch (error) {
      tell(error);
    }
  });
  form.querySelector(".cancel")?.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", () => void give(place, select.value, way()));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  select.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.give") : null;
  const row = button?.closest("[data-place]");
  if (row instanceof HTMLElement) {
    event.preventDefault();
    choose(row);
  }
});

document.addEventListener("click", (event) => {
  const twist = event.target instanceof Element ? event.target.closest("button.twist") : null;
  const inside = twist && document.getElementById(twist.getAttribute("aria-controls") || "");
  if (!twist || !inside) return;
  inside.hidden = !inside.hidden;
  twist.setAttribute("aria-expanded", String(!inside.hidden));
});

// Drag and drop.
document.getElementById("palette")?.addEventListener("dragstart", (event) => {
  const chip = event.target instanceof Element ? event.target.closest("[data-agent]") : null;
  if (chip instanceof HTMLElement && event.dataTransfer) {
    event.dataTransfer.setData("text/x-agent", chip.dataset.agent || "");
    event.dataTransfer.effectAllowed = "copy";
  }
});

/** @param {Event} event */
const rowOf = (event) => {
  const row = event.target instanceof Element ? event.target.closest("[data-place]") : null;
  return row instanceof HTMLElement ? row : null;
};

for (const house of document.querySelectorAll(".house")) {
  house.addEventListener("dragover", (event) => {
    const row = rowOf(event);
    if (row) {
      event.preventDefault();
      row.classList.add("drop");
    }
  });
  house.addEventListener("dragleave", (event) => rowOf(event)?.classList.remove("drop"));
  house.addEventListener("drop", (event) => {
    event.preventDefault();
    const row = rowOf(event);
    row?.classList.remove("drop");
    const agent = event instanceof DragEvent ? event.dataTransfer?.getData("text/x-agent") : "";
    if (row && agent) choose(row, agent);
  });
}

offerUndo();
