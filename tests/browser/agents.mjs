// The life of an agent: made, edited, given a topic where it sticks, put into the archive while its topic is open, and brought back.

import { accessible, answered, assert, base, browse, eventually, expect, say } from "./kit.mjs";

const card = (page, id) => page.locator(`.agent[data-agent="${id}"]`);
const yes = (page) => page.locator("dialog[open] .row.end button").last().click();

await browse(async (page, context) => {
  // Cards: the default has its badge, and nothing that would take it away.
  await page.goto(`${base}/agents`);
  await card(page, "main").getByText("Default", { exact: true }).waitFor();
  await eventually(async () => assert.equal(await card(page, "main").getByRole("button", { name: "Archive" }).count(), 0));
  await eventually(async () => assert.equal(await card(page, "rose").getByRole("button", { name: "Archive" }).count(), 1));
  await eventually(async () => assert.match(await card(page, "rose").innerText(), /🌹[^]*Rose[^]*skill[^]*memor[^]*place/));
  await accessible(page);

  // Create.
  await page.click("#new-agent");
  await page.fill('#new-form [name="id"]', "dot");
  await page.fill('#new-form [name="name"]', "Dot");
  await page.fill('#new-form [name="emoji"]', "🦔");
  await page.fill('#new-form [name="soul"]', "You are Dot, dry as dust.");
  await page.click("#new-form button[type=submit]");
  await page.waitForURL(`${base}/agents/dot`);
  await page.waitForFunction(() => document.getElementById("file-text")?.value.includes("dry as dust"));

  // Edit, and unsaved edits ask first.
  await page.fill('#identity [name="vibe"]', "dry, brief");
  await page.locator("#nav").getByText("Overview").click();
  await page.getByText("Leave without saving?").waitFor();
  await page.locator("dialog[open]").getByText("Cancel").click();
  assert.equal(page.url(), `${base}/agents/dot`);
  await page.click("#identity button[type=submit]");
  await page.getByText("Saved. It counts").waitFor();
  await page.fill("#file-text", "You are Dot, dry as a desert.");
  await page.selectOption("#file", "USER.md");
  await page.getByText("Leave SOUL.md without saving?").waitFor();
  await page.locator("dialog[open]").getByText("Cancel").click();
  await eventually(async () => assert.equal(await page.inputValue("#file"), "SOUL.md"));
  await page.click("#file-form button[type=submit]");
  await page.getByText("SOUL.md is saved").waitFor();
  await page.reload();
  await eventually(async () => assert.equal(await page.inputValue('#identity [name="vibe"]'), "dry, brief"));
  await page.waitForFunction(() => document.getElementById("file-text")?.value.includes("a desert"));
  await accessible(page);

  // Somebody else's change of the same key asks first.
  expect("412");
  await page.evaluate(() => fetch("/api/v1/agents/dot", { method: "PATCH", headers: { "content-type": "application/json", "x-parlor": "1" }, body: JSON.stringify({ vibe: "sunny" }) }));
  await page.fill('#identity [name="vibe"]', "rainy");
  await page.click("#identity button[type=submit]");
  await page.getByText("Somebody else changed this meanwhile.").waitFor();
  await page.locator("dialog[open] pre", { hasText: "sunny" }).waitFor();
  await yes(page);
  await page.getByText("Saved. It counts").waitFor();
  await page.goto(`${base}/agents`);
  await card(page, "dot").getByText("rainy").waitFor();

  // Tools and limits: the lines are shown first, a wrong value says so, and the change is taken back.
  await page.goto(`${base}/agents/dot`);
  const review = (form) => page.locator(`${form} button[type=submit]`);
  await eventually(async () => assert.ok(await review("#tools").isDisabled()));
  await page.locator('#tools [name="tool"][value="web_fetch"]').focus();
  await page.keyboard.press("Space");
  await review("#tools").click();
  await page.locator("dialog[open] pre", { hasText: '+deny = ["web_fetch"]' }).waitFor();
  await accessible(page);
  await yes(page);
  await page.getByText("Saved. It counts").waitFor();
  await eventually(async () => assert.ok(!(await page.locator('#tools [name="tool"][value="web_fetch"]').isChecked())));
  await page.locator("#tools tr", { hasText: "web_fetch" }).getByText("deny").first().waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Taken back.").waitFor();
  await eventually(async () => assert.ok(await page.locator('#tools [name="tool"][value="web_fetch"]').isChecked()));
  await page.getByLabel("max steps").fill("0");
  await review("#limits").click();
  await page.locator("#limits .note.bad", { hasText: "max_steps" }).waitFor();
  await page.getByLabel("max steps").fill("12");
  await page.getByLabel("tokens per day").fill("5000");
  await review("#limits").click();
  await page.locator("dialog[open] pre", { hasText: "+tokens_per_day = 5000" }).waitFor();
  await yes(page);
  await page.getByText("Saved. It counts").waitFor();
  await eventually(async () => assert.equal(await page.getByLabel("max steps").inputValue(), "12"));
  await page.locator("#limits tr", { hasText: "max steps" }).getByText(/config.toml:/).waitFor();
  await page.fill('#model [name="fallback"]', "nowhere/x");
  await review("#model").click();
  await page.locator("#model .note.bad").first().waitFor();
  await page.fill('#model [name="fallback"]', "");

  // Switch and stick, with the header and the list.
  await page.goto(`${base}/chat?place=web:home:writing`);
  await page.selectOption("#agent-picker", "dot");
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Dot");
  await page.locator(".message.gateway", { hasText: "Dot answers here" }).first().waitFor();
  await say(page, "how are you");
  await answered(page, "Dot", "how are you");
  await page.reload();
  await eventually(async () => assert.equal(await page.locator("#agent-picker").inputValue(), "dot"));
  await eventually(async () => assert.match(await page.title(), /🦔 Dot/));
  await eventually(async () => assert.equal(await page.locator("a.topic[aria-current] .mark").innerText(), "🦔"));
  await eventually(async () => assert.equal(await page.locator("a.topic", { hasText: "Code" }).locator(".mark").count(), 1));
  await eventually(async () => assert.notEqual(await page.locator("a.topic", { hasText: "Code" }).locator(".mark").innerText(), "🦔"));

  // Pause and resume, from another window.
  const other = await context.newPage();
  await other.goto(`${base}/agents/dot`);
  await other.getByRole("button", { name: "Pause" }).click();
  await other.getByText("Messages are kept and wait").waitFor();
  await yes(other);
  await other.getByText("paused", { exact: true }).waitFor();
  await other.getByRole("button", { name: "Resume" }).click();
  await other.getByRole("button", { name: "Pause" }).waitFor();

  // The archive: what will happen is told, and the open chat falls back without a reload.
  await other.getByRole("button", { name: "Archive" }).click();
  await other.getByText("1 place of its own fall back").waitFor();
  await yes(other);
  await other.waitForURL(`${base}/agents`);
  await eventually(async () => assert.equal(await card(other, "dot").count(), 0));
  await page.waitForFunction(() => document.getElementById("talk-agent")?.textContent === "Rose");
  await say(page, "who is it now");
  await answered(page, "Rose", "who is it now");

  // And back.
  await other.getByRole("button", { name: "Restore" }).click();
  await card(other, "dot").waitFor();
  await other.close();
});
