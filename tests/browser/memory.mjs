// The choice of an agent is in the address: it survives a reload, goes along to other pages, and decides which memories are shown.

import { accessible, assert, base, browse, eventually } from "./kit.mjs";

const remember = (page, agent, text, visibility) =>
  page.evaluate(
    async (body) => {
      const answer = await fetch("/api/v1/memories", { method: "POST", headers: { "content-type": "application/json", "x-parlor": "1" }, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(await answer.text());
    },
    { agent, text, visibility },
  );

await browse(async (page) => {
  await remember(page, "main", "beans grow at the fence", "private");
  await remember(page, "rose", "roses like the sun", "private");
  await remember(page, "main", "the house is green", "global");
  const shown = () => page.locator("#memories tbody tr").allInnerTexts();
  const has = async (words) => (await shown()).some((row) => row.includes(words));

  // Rose reads main's memories, each with a badge.
  await page.goto(`${base}/memory`);
  await page.selectOption("#scope", "rose");
  await page.waitForURL(/agent=rose/);
  await eventually(async () => assert.ok(await has("roses like the sun")));
  await eventually(async () => assert.ok(await has("[main] beans grow"), "another agent's memory has its badge"));
  await eventually(async () => assert.ok(await has("Main, everywhere; also Rose (read_memory_from)"), "who sees it, and why"));
  await eventually(async () => assert.ok(await has("every agent, everywhere")));
  await accessible(page);

  // Main does not read Rose's.
  await page.selectOption("#scope", "main");
  await page.waitForURL(/agent=main/);
  await eventually(async () => assert.ok(!(await has("roses like the sun"))));
  await eventually(async () => assert.ok(await has("beans grow")));
  await page.reload();
  await eventually(async () => assert.equal(await page.inputValue("#scope"), "main"));
  await eventually(async () => assert.ok(!(await has("roses like the sun"))));
  for (const name of ["Conversations", "Logs"]) {
    await page.locator("#nav").getByText(name, { exact: true }).click();
    await page.waitForURL(/agent=main/);
    await eventually(async () => assert.equal(await page.inputValue("#scope"), "main"));
  }

  // Search, and forget.
  await page.goto(`${base}/memory?agent=main`);
  await page.fill("#q", "beans");
  await page.keyboard.press("Enter");
  await page.waitForURL(/agent=main&q=beans/);
  await eventually(async () => assert.equal((await shown()).length, 1));
  await page.getByRole("button", { name: "Forget" }).click();
  await page.locator("dialog[open]").getByText("beans grow").waitFor();
  await page.locator("dialog[open] button.danger").click();
  await page.getByText("Nothing is saved here.").waitFor();

  // MEMORY.md: an edit becomes a version, which is looked at and brought back.
  for (const text of ["I like tea.", "I like coffee."]) {
    await page.goto(`${base}/agents/main?file=MEMORY.md`);
    await page.waitForFunction(() => document.getElementById("file")?.value === "MEMORY.md");
    await page.fill("#file-text", text);
    await page.click("#file-form button[type=submit]");
    await page.getByText("MEMORY.md is saved").waitFor();
  }
  await page.goto(`${base}/memory?agent=main`);
  await page.getByRole("button", { name: "Look" }).first().click();
  await page.locator("dialog[open] pre", { hasText: "I like tea." }).waitFor();
  await page.locator("dialog[open]").getByText("Close").click();
  await page.getByRole("button", { name: "Revert" }).first().click();
  await page.locator("dialog[open] .row.end button").last().click();
  await page.waitForFunction(() => document.querySelectorAll("button.look").length === 2);
  await page.goto(`${base}/agents/main?file=MEMORY.md`);
  await page.waitForFunction(() => document.getElementById("file-text")?.value.includes("I like tea."));
});
