// The page of a turn whose gateway was killed in the middle: the gap, what came after it, the prompt by section.

import { accessible, assert, base, browse } from "./kit.mjs";

const turn = process.env.PARLOR_TURN;

await browse(async (page) => {
  await page.goto(`${base}/turns/${turn}`);
  const stages = page.locator(".timeline .stage h3");
  await stages.first().waitFor();
  const titles = await stages.allTextContents();
  const at = (title) => titles.findIndex((text) => text.startsWith(title));
  assert.ok(at("Tool now") > 0, titles.join(" | "));
  assert.ok(at("Nothing ran") > at("Tool now"), `the gap comes after the tool: ${titles.join(" | ")}`);
  assert.ok(titles.findLastIndex((text) => text.startsWith("Asked")) > at("Nothing ran"), `and the story goes on: ${titles.join(" | ")}`);
  assert.ok(at("Delivered") > at("Turn over"), titles.join(" | "));
  const question = page.locator("details.part").filter({ has: page.locator("summary").getByText("Question", { exact: true }) });
  await question.locator("summary").click();
  await question.locator("pre", { hasText: "the time" }).first().waitFor();
  await accessible(page);
  await page.goto(`${base}/turns`);
  await page.locator(`a[href="/turns/${turn}"]`).click();
  await page.locator(".timeline").waitFor();
});
