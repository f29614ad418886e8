// Two agents in two topics, a switch, a command, a file, a new topic, and a reload that shows the same.

import { accessible, answered, assert, browse, eventually, say } from "./kit.mjs";

await browse(async (page) => {
  const topics = () => page.locator("#topic-list a.topic");
  await page.waitForSelector("#topic-list a.topic");
  const names = await page.locator("#topic-list a.topic b").allTextContents();
  assert.deepEqual(names, ["Main", "Writing", "Code"]);
  await eventually(async () => assert.ok(await page.locator("#agent-picker option").count() >= 3, "the first paint has the agents"));

  await topics().filter({ hasText: "Writing" }).click();
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Rose");
  await say(page, "a title for my talk");
  await answered(page, "Rose", "a title for my talk");
  await eventually(async () => assert.match(await page.title(), /Writing · 🌹 Rose/));

  await topics().filter({ hasText: "Code" }).click();
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Ada");
  await say(page, "why does it loop");
  await answered(page, "Ada", "why does it loop");

  // A switch sticks, the words stay, and the header and the list say so.
  await page.selectOption("#agent-picker", "main");
  await page.locator(".message.gateway", { hasText: "Main answers here" }).first().waitFor();
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Main");
  await say(page, "and now");
  await answered(page, "Main", "and now");
  await page.reload();
  await answered(page, "Ada", "why does it loop");
  await answered(page, "Main", "and now");
  await eventually(async () => assert.equal(await page.locator("#agent-picker").inputValue(), "main"));

  // A new topic begins with the agent of the one that is looked at.
  await topics().filter({ hasText: "Writing" }).click();
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Rose");
  await page.click("#new");
  await page.fill("#new-name", "Garden plans");
  await eventually(async () => assert.equal(await page.locator("#new-agent").inputValue(), "rose"));
  await page.click("#new-form button[type=submit]");
  await say(page, "where do beans grow");
  await answered(page, "Rose", "where do beans grow");
  await topics().filter({ hasText: "Garden plans" }).waitFor();

  // Commands are offered as they are typed.
  await page.fill("#words", "/who");
  await page.locator("#suggest [role=option]", { hasText: "/whoami" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator(".message.gateway", { hasText: "web:home:garden-plans" }).first().waitFor();

  // A file goes in.
  await page.setInputFiles("#upload", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("beans") });
  await page.locator("#attached .file", { hasText: "notes.txt" }).waitFor();
  await say(page, "read this");
  await page.locator(".message.person .file", { hasText: "notes.txt" }).waitFor();
  await answered(page, "Rose", "read this");
  await accessible(page);
});
