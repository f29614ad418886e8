// With one agent there is nothing to choose from, and nothing broken in its place.

import { accessible, answered, assert, base, browse, eventually, say } from "./kit.mjs";

await browse(async (page) => {
  await page.goto(`${base}/chat`);
  await page.waitForSelector("#topic-list a.topic");
  await eventually(async () => assert.equal(await page.locator("#agent-picker").count(), 0));
  await say(page, "hello there");
  await answered(page, "Main", "hello there");
  for (const path of ["/memory", "/conversations", "/turns", "/logs"]) {
    await page.goto(`${base}${path}`);
    await eventually(async () => assert.equal(await page.locator("#scope").count(), 0, path));
  }
  await page.goto(`${base}/house`);
  await eventually(async () => assert.equal(await page.locator("#palette, .give").count(), 0));
  await page.goto(`${base}/agents`);
  await eventually(async () => assert.equal(await page.locator(".agent").count(), 1));
  await eventually(async () => assert.equal(await page.getByRole("button", { name: "Archive" }).count(), 0));
  await accessible(page);
});
