// What if: walks real and made-up messages, edits the bindings, reads what would change, keeps a case and saves.
// The list that was shown goes to PARLOR_LIST, so that the test can compare it with what happens.

import { writeFileSync } from "node:fs";
import { accessible, assert, base, browse, eventually, expect } from "./kit.mjs";

expect("409");

/** With PARLOR_SHOTS, pictures of the page as it is are kept there. */
async function pictures(page) {
  const shots = process.env.PARLOR_SHOTS;
  for (const [size, width] of shots ? [["narrow", 360], ["wide", 1280]] : []) {
    await page.setViewportSize({ width, height: 800 });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wider <= 0, `${wider} px wider than a ${size} screen`);
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${shots}/what-if-edited-${size}-${colorScheme}.png`, fullPage: true });
    }
  }
}

await browse(async (page) => {
  const settled = () => page.waitForFunction(() => !document.body.dataset.trying);
  const text = () => page.inputValue("#text");
  const answers = async (agent) => {
    await settled();
    await page.locator(`#walk [data-agent="${agent}"]`).waitFor();
  };
  await page.goto(`${base}/what-if`);
  // The newest real message is shown at first: somebody who did not speak to the bot, in a closed place.
  await answers("nobody");
  await eventually(async () => assert.equal(await page.locator('[data-stage="place"]').getAttribute("data-state"), "stops"));
  await eventually(async () => assert.equal(await page.locator("[data-rank]").count(), 14));
  await accessible(page);

  // A made-up message.
  await page.selectOption("#which", "");
  await page.fill('[name="place"]', "telegram:topic:-1001:101");
  await page.fill('[name="person"]', "telegram:222");
  await answers("rose");
  await eventually(async () => assert.equal(await page.locator('[data-says="decides"]').getAttribute("data-rank"), "exact_topic"));
  await page.uncheck('[name="mention"]');
  await answers("nobody");
  await eventually(async () => assert.equal(await page.locator('[data-stage="mention"]').getAttribute("data-state"), "stops"));
  await page.check('[name="reply"]');
  await answers("rose");

  // A problem is marked at its line, and such a text cannot be saved.
  const before = await text();
  const wrong = before.replace('agent = "ada"', 'agent = "adda"');
  await page.fill("#text", wrong);
  const line = wrong.split("\n").findIndex((words) => words.includes("adda")) + 1;
  await page.locator("#problems .note", { hasText: "unknown agent `adda`" }).waitFor();
  await eventually(async () => assert.equal(await page.locator("#lines b").textContent(), String(line)));
  await eventually(async () => assert.ok(await page.locator("#rules button[type=submit]").isDisabled()));
  await page.locator("#problems button", { hasText: `Line ${line}` }).click();
  await eventually(async () => assert.equal(await page.evaluate(() => getSelection()?.toString() || document.querySelector("#text").value.slice(document.querySelector("#text").selectionStart, document.querySelector("#text").selectionEnd)), 'agent = "adda"'));

  // Undone, nothing would change.
  await page.click("#undo");
  await settled();
  await eventually(async () => assert.equal(await text(), before));
  await page.fill("#text", `${before}\n# nothing but a comment\n`);
  await page.locator('#changed [data-count="0"]').waitFor();

  // The garden goes to Ada, and another group is open instead of this one.
  const edited = before.replace('101"\nagent = "rose"', '101"\nagent = "ada"').replace("telegram:group:-1001", "telegram:group:-1002");
  await page.fill("#text", edited);
  await page.locator("#changed [data-message]").first().waitFor();
  await answers("ada");
  const shown = await page.locator("#changed [data-message]").evaluateAll((rows) =>
    rows.map((row) => ({ id: Number(row.dataset.message), now: { agent: row.dataset.before === "nobody" ? null : { id: row.dataset.before } }, after: { agent: row.dataset.after === "nobody" ? null : { id: row.dataset.after } } })),
  );
  assert.ok(shown.length >= 3, JSON.stringify(shown));
  await page.locator("#changed", { hasText: "Garden" }).waitFor();
  await accessible(page);
  await pictures(page);
  // A row leads to the way of its message.
  await page.locator('#changed [data-message][data-after="nobody"] button').first().click();
  await answers("nobody");
  await page.selectOption("#which", "");
  await answers("ada");

  // Kept beside the edits, saved with them.
  await page.click("#keep");
  await page.locator(".toast", { hasText: "Save keeps it" }).waitFor();
  await settled();
  await eventually(async () => assert.match(await text(), /\[\[route_tests\]\]\nname = "ada answers in [^"]*"\nplace = "telegram:topic:-1001:101"\nagent = "ada"/));
  await page.click("#rules button[type=submit]");
  await page.locator(".toast", { hasText: "Saved" }).waitFor();
  await settled();
  writeFileSync(process.env.PARLOR_LIST, JSON.stringify(shown));

  // The kept test keeps the garden with Ada.
  const tested = await text();
  await page.fill("#text", tested.replace('101"\nagent = "ada"', '101"\nagent = "rose"'));
  await page.locator("#problems .note", { hasText: "fails: rose answers, not ada" }).waitFor();
  await page.click("#undo");
  await settled();
  await eventually(async () => assert.equal(await text(), tested));

  // With nothing edited, one press writes a test into the file.
  await page.fill('[name="place"]', "telegram:topic:-1001:102");
  await answers("ada");
  await page.click("#keep");
  await page.locator(".toast", { hasText: "Kept as a route test" }).waitFor();
  await settled();
  await eventually(async () => assert.equal((await text()).match(/\[\[route_tests\]\]/g).length, 2));
});
