// The entrance from Telegram: what Telegram puts behind the # signs in, once.

import { assert, browse, expect } from "./kit.mjs";

const base = process.env.PARLOR_BASE;
const entrance = `${base}/mini-app#tgWebAppData=${encodeURIComponent(process.env.PARLOR_INIT_DATA)}&tgWebAppVersion=9.1&tgWebAppPlatform=android`;

await browse(async (page) => {
  await page.goto(`${base}/mini-app`);
  await page.getByText("write /dashboard to the bot").waitFor();
  await page.goto("about:blank");
  await page.goto(entrance);
  await page.waitForURL(/\/(chat|overview)$/);
  await page.locator("h1").first().waitFor();
  expect("403");
  await page.goto("about:blank");
  await page.goto(entrance);
  await page.getByText("This was used before").waitFor();
  assert.ok(!page.url().includes("tgWebAppData"), page.url());
});
