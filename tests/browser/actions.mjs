// What runs a house from day to day: a stopped turn, a message sent again, somebody let in, a switched place; and a key that may only
// look sees no button.

import { assert, base, browse, eventually, expect } from "./kit.mjs";

const place = "telegram:topic:-1001:101";
const yes = (page) => page.locator("dialog[open] .row.end button").last().click();
const pages = ["/house", "/overview", "/conversations", `/conversations/${place}`, "/live", "/turns", "/agents", "/agents/rose", "/memory?agent=rose", "/people", "/delivery", "/usage", "/config", "/logs", "/audit", "/system"];

await browse(async (page, context) => {
  // A key that may only look.
  const looker = await (await context.browser()).newContext({ extraHTTPHeaders: { authorization: `Bearer ${process.env.PARLOR_READER}` } });
  const seen = await looker.newPage();
  for (const path of pages) {
    const answer = await seen.goto(`${base}${path}`);
    assert.equal(answer.status(), 200, path);
    const controls = await seen.locator("[data-call], .give, #new-agent, #waiting, button[type=submit]:not([role=search] *):visible").evaluateAll((all) => all.map((one) => one.outerHTML));
    assert.deepEqual(controls, [], `${path} as a reader`);
  }
  await looker.close();

  // Live: a turn that hangs is stopped.
  await page.goto(`${base}/live`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Nothing runs right now.").waitFor();

  // Delivery: the budgets with their use; one is sent again, one is given up.
  await page.goto(`${base}/delivery`);
  const budget = page.locator('[data-platform="telegram"]');
  await eventually(async () => assert.match(await budget.innerText(), /all chats[^]*30 in a second[^]*a group[^]*20 in a minute/));
  await page.locator('[data-chat="telegram:group:-1001"]', { hasText: /[1-9] of 20 in a minute/ }).waitFor();
  await eventually(async () => assert.equal(await page.locator("tr[data-row]").count(), 2));
  await page.locator("tr[data-row]").first().getByRole("button", { name: "Retry" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 1);
  await page.getByRole("button", { name: "Give up" }).click();
  await page.getByText("nobody will get it").waitFor();
  await yes(page);
  await page.getByText("Everything was delivered.").waitFor();

  // People: let in, made an admin, removed.
  await page.goto(`${base}/people`);
  await page.locator("#waiting").getByRole("button", { name: "Let in" }).click();
  await page.getByText("is let in.").waitFor();
  const row = () => page.locator('tr[data-person="telegram:222"]');
  await row().locator("select").selectOption("admin");
  await page.getByText("It counts for every agent").waitFor();
  await yes(page);
  await page.waitForFunction(() => document.querySelector('tr[data-person="telegram:222"] select')?.value === "admin" && !document.querySelector("dialog"));
  await row().getByRole("button", { name: "Remove" }).click();
  await yes(page);
  await page.waitForFunction(() => document.querySelector('tr[data-person="telegram:222"] select')?.value !== "admin");

  // Conversations: found by words, switched, given back, copied, taken along as a file.
  await page.goto(`${base}/conversations`);
  await page.fill("#q", "hello");
  await page.keyboard.press("Enter");
  await page.locator(".hit", { hasText: "hello" }).first().waitFor();
  await page.goto(`${base}/conversations/${place}`);
  await page.selectOption("#agent", "main");
  await page.getByRole("button", { name: "Let the rules decide" }).click();
  await page.waitForFunction(() => document.getElementById("agent")?.value === "rose" && !document.querySelector('[data-call^="DELETE"]'));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByText("Export", { exact: true }).click()]);
  assert.equal(file.suggestedFilename(), "telegram-topic--1001-101.md");
  await page.getByRole("button", { name: "Fork to terminal" }).click();
  await yes(page);
  await page.getByText("A copy is in the terminal: parlor chat --topic fork-rose").waitFor();
  await page.goto(`${base}/conversations/${place}`);
  await page.getByRole("button", { name: "Fork to web chat" }).click();
  await page.getByText("Its agent goes on there").waitFor();
  await yes(page);
  await page.waitForURL(`${base}/chat?place=web:home:fork-rose`);
  await page.locator(".message.person", { hasText: "hello" }).first().waitFor();
  await page.locator(".message.agent", { hasText: "hello" }).first().waitFor();
  await eventually(async () => assert.equal(await page.locator("#talk-agent").innerText(), "Rose"));
  await page.goto(`${base}/conversations/${place}`);
  await page.getByRole("button", { name: "New" }).click();
  await yes(page);
  await page.getByText("This conversation is empty.").waitFor();

  // System: all checks, and a backup.
  await page.goto(`${base}/system`);
  await page.getByRole("button", { name: "Back up" }).click();
  await yes(page);
  await page.getByText(/The backup .+ is written/).waitFor();

  // A page that is not there is told to a person.
  expect("404");
  const gone = await page.request.get(`${base}/agents/nobody`);
  assert.equal(gone.status(), 404);
  assert.match(gone.headers()["content-type"], /text\/html/);
  assert.match(await gone.text(), /No agent is called nobody/);
});
