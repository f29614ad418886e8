// Agents: makes a new one.

import { call, tell } from "./app.js";

const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("new-dialog"));
const form = /** @type {HTMLFormElement | null} */ (document.getElementById("new-form"));

document.getElementById("new-agent")?.addEventListener("click", () => dialog?.showModal());
form?.querySelector(".cancel")?.addEventListener("click", () => dialog?.close());
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  /** @type {Record<string, string>} */
  const body = {};
  for (const [name, value] of new FormData(form)) if (String(value).trim()) body[name] = String(value).trim();
  try {
    const made = await call("POST", "/api/v1/agents", body);
    location.href = `/agents/${encodeURIComponent(made.id)}`;
  } catch (error) {
    tell(error);
  }
});
