// Opens the page of `interlock serve --page` in Chromium. Exits with 1 at the first surprise.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { chromium } from "playwright-core";

const [address, shots] = process.argv.slice(2);
assert(address, "usage: node page.mjs http://localhost:8081/ [DIRECTORY FOR SCREENSHOTS]");
const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

// One namespace alone, also after a refresh, and all again.
async function filters(tab, name) {
  const select = tab.locator("#namespace");
  const entries = tab.locator("[data-namespace]");
  const visible = () => entries.evaluateAll((all) => all.filter((entry) => entry.offsetParent).map((entry) => entry.dataset.namespace));
  const names = [...new Set(await visible())].sort();
  assert(names.length > 1, `${name}: entries of two namespaces`);
  await select.selectOption(names[0]);
  await select.blur();
  const before = await tab.locator("#time").textContent();
  await tab.waitForFunction((before) => document.querySelector("#time").textContent !== before, before);
  assert.deepEqual([...new Set(await visible())], [names[0]], `${name}: only ${names[0]}`);
  assert.equal(await select.inputValue(), names[0]);
  await select.selectOption("");
  assert.deepEqual([...new Set(await visible())].sort(), names);
}

async function copies(tab, context) {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const wanted = await tab.locator("code.command").first().textContent();
  await tab.locator("button.copy").first().click();
  await tab.locator("button.copy", { hasText: "Copied" }).first().waitFor();
  assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), wanted);
}

async function look(name, options) {
  const context = await browser.newContext(options);
  const tab = await context.newPage();
  const complaints = [];
  tab.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  tab.on("dialog", (dialog) => (complaints.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  const foreign = [];
  tab.on("request", (request) => request.url() !== address && foreign.push(request.url()));
  await tab.goto(address);
  assert((await tab.locator("main section").count()) === 4, `${name}: four sections`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
  assert(wide <= options.viewport.width, `${name}: it is ${wide} pixels wide`);
  if (options.javaScriptEnabled !== false) {
    const before = await tab.locator("#time").textContent();
    await tab.waitForFunction((before) => document.querySelector("#time").textContent !== before, before);
    await filters(tab, name);
    await copies(tab, context);
    // The page shows that Interlock does not answer, until it answers again.
    await context.setOffline(true);
    await tab.locator("#lost:not(:empty)").waitFor();
    await context.setOffline(false);
    await tab.locator("#lost:empty").waitFor({ state: "attached" });
  }
  if (shots) await tab.screenshot({ path: path.join(shots, `page-${name}.png`), fullPage: true });
  assert.deepEqual(complaints.filter((text) => !text.includes("ERR_INTERNET_DISCONNECTED")), []);
  assert.deepEqual(foreign, [], `${name}: nothing but the page is loaded`);
  await context.close();
}

const desk = { width: 1280, height: 900 };
await look("desktop", { viewport: desk });
await look("dark", { viewport: desk, colorScheme: "dark" });
await look("without-script", { viewport: desk, javaScriptEnabled: false });
await look("phone", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
await browser.close();
console.log("4 sections, refreshed, in 4 views");
