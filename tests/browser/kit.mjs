// A browser for the tests in tests/it/browser.rs: Chromium, driven by playwright-core, which scripts/check installs.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.env.PARLOR_BROWSER}/package.json`);
const { chromium } = require("playwright-core");
const { AxeBuilder } = require("@axe-core/playwright");

/** Milliseconds until something on a page must have happened, on a loaded machine. */
const patience = 30000;

/** Console lines that a test expects, because it does something that is refused. */
const expected = [];

/** Lets a console error pass that has these words. */
export function expect(words) {
  expected.push(words);
}

/**
 * Opens a browser, signs in by the link in PARLOR_LINK, runs the scenario, and fails on any console error.
 * @param {(page: import("playwright-core").Page, context: any) => Promise<void>} scenario
 */
export async function browse(scenario) {
  const browser = await chromium.launch({
    executablePath: process.env.PARLOR_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
  });
  const errors = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", timezoneId: "UTC" });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    page.on("console", (line) => {
      if (line.type() === "error" && !expected.some((words) => line.text().includes(words))) errors.push(line.text());
    });
    page.on("response", (answer) => {
      if (answer.status() === 404) errors.push(`not found: ${answer.url()}`);
    });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("request", (request) => {
      const host = new URL(request.url()).hostname;
      if (!["127.0.0.1", "localhost", ""].includes(host)) errors.push(`a request to ${host}`);
    });
    // For work on the sheets and scripts: those of this folder instead of those in the binary.
    if (process.env.PARLOR_ASSETS) await page.route("**/assets/*/*", (route) => route.fulfill({ path: `${process.env.PARLOR_ASSETS}/${route.request().url().split("/").at(-1)}` }));
    if (process.env.PARLOR_LINK) {
      await page.goto(process.env.PARLOR_LINK);
      await page.waitForURL(/\/(chat|overview)/);
    }
    await scenario(page, context);
    assert.deepEqual(errors, [], "errors on the console");
  } finally {
    await browser.close();
  }
}

/** Fails on serious and critical findings of axe. */
export async function accessible(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const grave = violations.filter((found) => ["serious", "critical"].includes(found.impact));
  const told = grave.map((found) => `${page.url()} ${found.id}: ${found.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  if (process.env.PARLOR_LAX) told.forEach((line) => console.error(line));
  else assert.deepEqual(told, [], "axe");
}

/**
 * Repeats an assertion until it holds: a page answers a press a moment later. In the end it fails as it did last.
 * @param {() => Promise<void>} asserted
 */
export async function eventually(asserted) {
  for (const end = Date.now() + patience; ; ) {
    try {
      return await asserted();
    } catch (failure) {
      if (Date.now() > end) throw failure;
      await new Promise((again) => setTimeout(again, 25));
    }
  }
}

/** The address of the gateway, from the link. */
export const base = process.env.PARLOR_LINK ? new URL(process.env.PARLOR_LINK).origin : "";

/** Writes a message in the open topic. */
export async function say(page, text) {
  await page.fill("#words", text);
  await page.keyboard.press("Escape");
  await page.click("#compose button[type=submit]");
}

/** Returns once a message of an agent has these words. */
export async function answered(page, agent, words) {
  await page.locator(".message.agent:not(.preview)", { hasText: words }).filter({ hasText: agent }).first().waitFor();
}

export { assert };
