// Every page, light and dark, wide and narrow: nothing serious for axe, nothing wider than the screen, no console error.
// With PARLOR_SHOTS, a picture of each is kept there.

import { accessible, assert, base, browse } from "./kit.mjs";

const pages = (process.env.PARLOR_PAGES || "/chat /house /what-if /overview /conversations /turns /live /approvals /agents /agents/rose /memory /memory?agent=rose /config /logs /people /jobs /delivery /usage /audit /system").split(" ");
const shots = process.env.PARLOR_SHOTS;
/** @type {Record<string, { width: number, height: number }>} */
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } };
const only = process.env.PARLOR_SIZE;

await browse(async (page) => {
  for (const [size, viewport] of Object.entries(sizes)) {
    if (only && only !== size) continue;
    await page.setViewportSize(viewport);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const path of pages) {
        const answer = await page.goto(`${base}${path}`);
        assert.equal(answer.status(), 200, path);
        await page.locator("h1").first().waitFor();
        await page.waitForTimeout(shots ? 150 : 20);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wider <= 0, `${path} is ${wider} px wider than a ${size} screen`);
        // Colours differ by scheme, structure by size: two of four are enough.
        if ((size === "wide") === (scheme === "light")) await accessible(page);
        if (shots) await page.screenshot({ path: `${shots}/${path.split("?")[0].slice(1).replaceAll(/[/:]/g, "-")}-${size}-${scheme}.png` });
      }
    }
  }
});
