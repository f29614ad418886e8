// A key that is revoked ends the chat that is open, and the page says so.

import { base, browse, expect } from "./kit.mjs";

await browse(async (page) => {
  expect("401");
  expect("ERR_INCOMPLETE_CHUNKED_ENCODING");
  await page.goto(`${base}/chat`);
  await page.waitForSelector("#topic-list a.topic");
  await page.evaluate(async () => {
    const { id } = await (await fetch("/api/v1/whoami")).json();
    await fetch(`/api/v1/tokens/${id}`, { method: "DELETE", headers: { "x-parlor": "1" } });
  });
  await page.locator("#offline", { hasText: "signed out" }).waitFor();
});
