// Gives a Telegram topic to another agent: by drag, undone, then by menu as a line of config.toml.

import { accessible, assert, base, browse, eventually } from "./kit.mjs";

const place = process.env.PARLOR_PLACE;

await browse(async (page) => {
  const row = () => page.locator(`[data-place="${place}"]`);
  const holder = async (agent) => {
    await page.waitForFunction(([key, wanted]) => document.querySelector(`[data-place="${key}"]`)?.getAttribute("data-agent") === wanted, [place, agent]);
  };
  await page.goto(`${base}/house`);
  await holder("rose");
  await accessible(page);

  await page.dragAndDrop('#palette [data-agent="main"]', `[data-place="${place}"] .name`);
  await page.check('dialog input[value="pin"]');
  await page.locator("dialog pre", { hasText: "/agent main" }).waitFor();
  await page.click("dialog button.main");
  await holder("main");
  await eventually(async () => assert.equal(await row().getAttribute("data-how"), "pin"));

  await page.locator(".toast button", { hasText: "Undo" }).click();
  await holder("rose");
  await eventually(async () => assert.equal(await row().getAttribute("data-how"), "own"));

  await row().locator("button.give").click();
  await page.selectOption("dialog select", "main");
  await page.check('dialog input[value="binding"]');
  await page.locator("dialog pre", { hasText: `match = "${place}"` }).waitFor();
  await page.click("dialog button.main");
  await holder("main");
  await eventually(async () => assert.equal(await row().getAttribute("data-how"), "own"));

  await page.fill("#q", "nothing is called so");
  await page.keyboard.press("Enter");
  await page.getByText("No place is called").waitFor();
});
