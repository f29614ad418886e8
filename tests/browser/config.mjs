// config.toml: a problem is shown at its line and changes nothing, a change is compared and applied, and an earlier text comes back.

import { accessible, assert, base, browse, eventually } from "./kit.mjs";

await browse(async (page) => {
  await page.goto(`${base}/config`);
  const field = page.locator("#text");
  const first = await field.inputValue();
  const apply = page.locator("#config button[type=submit]");

  // A problem, at its line.
  await field.fill(`${first}\n[agents.rose.limits]\nturns_per_minute = "many"\n`);
  const line = first.split("\n").length + 2;
  await page.locator("#problems .note.bad", { hasText: `line ${line}` }).waitFor();
  await eventually(async () => assert.ok(await apply.isDisabled()));
  await page.locator("#problems button").first().click();
  const selected = await page.evaluate(() => {
    const field = /** @type {HTMLTextAreaElement} */ (document.getElementById("text"));
    return field.value.slice(field.selectionStart, field.selectionEnd);
  });
  assert.match(selected, /many/);
  await accessible(page);

  // Unsaved edits ask first.
  await page.locator("#nav").getByText("Overview").click();
  await page.getByText("Leave without saving?").waitFor();
  await page.locator("dialog[open]").getByText("Cancel").click();

  // A good text is compared and applied.
  await field.fill(`${first}\n[agents.rose.limits]\nturns_per_minute = 7\n`);
  await page.locator("#problems .note.good").waitFor();
  await page.locator("#diff", { hasText: "+turns_per_minute = 7" }).waitFor();
  await apply.click();
  await page.getByText("Applied. It counts now.").waitFor();
  await eventually(async () => assert.match(await field.inputValue(), /turns_per_minute = 7/));
  await page.goto(`${base}/agents/rose`);
  await eventually(async () => assert.equal(await page.getByLabel("turns per minute").inputValue(), "7"));

  // The form changes the same text, and comments stay.
  await page.goto(`${base}/config`);
  await page.fill("#filter", "agents.rose.limits.turns_per_minute");
  const setting = page.locator('[data-key="agents.rose.limits.turns_per_minute"] input');
  await setting.fill("9");
  await setting.blur();
  await page.locator("#diff", { hasText: "+turns_per_minute = 9" }).waitFor();
  await apply.click();
  await page.getByText("Applied. It counts now.").waitFor();

  // Back to how it was.
  await page.locator("button.back").last().click();
  await page.locator("dialog[open] pre", { hasText: "-turns_per_minute = 9" }).waitFor();
  await page.locator("dialog[open] .row.end button").last().click();
  await page.getByText("Rolled back. It counts now.").waitFor();
  await eventually(async () => assert.equal(await field.inputValue(), first));
});
