// A call waits for a yes on the page Approvals; it is given there, and the history says by whom.

import { accessible, assert, base, browse } from "./kit.mjs";

await browse(async (page) => {
  await page.goto(`${base}/approvals`);
  const open = page.locator('section[data-approval="1"]');
  await open.waitFor();
  assert.match(await open.innerText(), /file_write/);
  assert.match(await open.innerText(), /path: a\.md/);
  await accessible(page);
  await open.getByRole("button", { name: "Allow" }).click();
  // The page looks again by itself.
  const past = page.locator('tr[data-approval="1"]');
  await past.waitFor();
  assert.match(await past.innerText(), /allowed/);
  await page.getByText("Nothing waits for a yes or no.").waitFor();
  await accessible(page);
  const link = await past.getByRole("link").first().getAttribute("href");
  await page.goto(`${base}${link}`);
  await page.getByText("asked whether to run file_write").waitFor();
  await page.getByText(/file_write was allowed by/).waitFor();
});
