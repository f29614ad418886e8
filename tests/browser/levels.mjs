// The house with a Discord server: its name and its categories stand above their channels, and are folded by keyboard.

import { accessible, assert, base, browse, eventually } from "./kit.mjs";

await browse(async (page) => {
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${base}/house`);
    const rows = await page.locator(".house .place:not(.place-head) .name").evaluateAll((all) => all.map((one) => one.textContent.replace("›", "").trim()));
    const server = rows.findIndex((row) => row.startsWith("Garden"));
    assert.deepEqual(rows.slice(server).map((row) => row.match(/Garden|Lab|news|questions|It broke/)?.[0]).filter(Boolean), ["Garden", "questions", "It broke", "Lab", "news"]);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wider <= 0, `${wider} px wider than the screen`);
    await accessible(page);
    if (process.env.PARLOR_SHOTS) await page.screenshot({ path: `${process.env.PARLOR_SHOTS}/levels-${width}.png`, fullPage: true });
  }
  const lab = page.getByRole("button", { name: "Places in Lab" });
  await lab.focus();
  await page.keyboard.press("Enter");
  await eventually(async () => assert.equal(await lab.getAttribute("aria-expanded"), "false"));
  await page.locator('[data-place="discord:channel:8202"]').waitFor({ state: "hidden" });
  await page.keyboard.press("Enter");
  await page.locator('[data-place="discord:channel:8202"]').waitFor();
});
