// Live: looks again every two seconds, as long as the page is seen.

import { freshen } from "./app.js";

async function look() {
  if (document.visibilityState === "visible" && !document.querySelector("dialog[open]")) {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const now = page.getElementById("main");
      const shown = document.getElementById("main");
      if (answer.ok && now && shown && now.innerHTML !== shown.dataset.was) {
        shown.dataset.was = now.innerHTML;
        shown.replaceChildren(...now.childNodes);
        freshen(shown);
      }
    } catch {
      // The next look tries again.
    }
  }
  setTimeout(() => void look(), 2000);
}

setTimeout(() => void look(), 2000);
