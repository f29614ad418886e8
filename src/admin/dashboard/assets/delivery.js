// Delivery: shows the send budgets anew every few seconds, while somebody looks.

import { freshen } from "./app.js";

async function refresh() {
  const old = document.getElementById("budgets");
  // A reader in a table is not moved away from it.
  if (document.hidden || !old || old.contains(document.activeElement)) return;
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = page.getElementById("budgets");
  if (!now) return;
  freshen(now);
  old.replaceWith(now);
}

setInterval(() => void refresh().catch(() => {}), 3000);
