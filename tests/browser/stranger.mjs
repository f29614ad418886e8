// Without a cookie, or with a wrong one, there is nothing to see.

import { assert, browse, expect } from "./kit.mjs";

const base = process.env.PARLOR_BASE;

await browse(async (page, context) => {
  expect("401");
  expect("403");
  let answer = await page.goto(`${base}/chat`);
  assert.equal(answer.status(), 401);
  const cookie = { value: "made-up", domain: "127.0.0.1", path: "/" };
  await context.addCookies(["parlor", "__Host-parlor"].map((name) => ({ ...cookie, name, secure: name.startsWith("__Host") })));
  answer = await page.goto(`${base}/chat`);
  assert.equal(answer.status(), 401);
  answer = await page.goto(`${base}/enter?code=made-up`);
  assert.equal(answer.status(), 403);
  assert.equal((await page.request.get(`${base}/api/v1/chat/places`)).status(), 401);
  for (const path of ["/agents", "/memory", "/config", "/logs", "/conversations/web:home/export"]) {
    assert.equal((await page.request.get(`${base}${path}`)).status(), 401, path);
  }
});
