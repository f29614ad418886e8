// Memory: shows an earlier version of MEMORY.md.

import { ask, call, tell } from "./app.js";

for (const button of document.querySelectorAll("button.look")) {
  button.addEventListener("click", async () => {
    try {
      const earlier = await call("GET", button.getAttribute("data-version") || "");
      await ask({ title: earlier.version, code: earlier.text, yes: "Close" });
    } catch (error) {
      tell(error);
    }
  });
}
