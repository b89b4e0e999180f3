// Opens a page of `interlock scan -o html` in Chromium and does what people do with it. Exits with 1 at the first surprise.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, shots] = process.argv.slice(2);
assert(page, "usage: node check.mjs PAGE.html [DIRECTORY FOR SCREENSHOTS]");
const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(options) {
  const context = await browser.newContext(options);
  const tab = await context.newPage();
  const complaints = [];
  const requests = [];
  tab.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  tab.on("dialog", (dialog) => (complaints.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  tab.on("request", (request) => requests.push(request.url()));
  const began = performance.now();
  await tab.goto(pathToFileURL(path.resolve(page)).href);
  await tab.locator(".controls:visible").waitFor();
  const opened = Math.round(performance.now() - began);
  return { tab, complaints, requests, opened };
}

// A column of what is in the page, the first 500 rows, and how many fit.
const column = (tab, at) => tab.$$eval("#findings tbody tr", (rows, at) => rows.map((row) => row.cells[at].textContent), at);
const fitting = async (tab) => parseInt(await tab.locator("#shown").textContent(), 10);
const shot = (tab, name) => shots && tab.screenshot({ path: path.join(shots, name) });
const sorted = (values, compare) => assert.deepEqual(values, [...values].sort(compare));
const severities = ["high", "medium", "low", "info"];
const collate = new Intl.Collator("en", { numeric: true }).compare;

// On a desk.
const desk = await open({ viewport: { width: 1280, height: 900 } });
const { tab } = desk;
const total = await fitting(tab);
assert.equal((await column(tab, 0)).length, Math.min(total, 500));
assert((await tab.locator("#severity option").count()) > 2, "the page needs findings of two severities");
sorted(await column(tab, 0), (a, b) => severities.indexOf(a) - severities.indexOf(b));
await shot(tab, "scan-desktop.png");

const timings = {};
for (const [at, name] of ["Severity", "Namespace", "Release", "Check"].entries()) {
  const head = tab.getByRole("button", { name, exact: false }).first();
  const compare = at === 0 ? (a, b) => severities.indexOf(a) - severities.indexOf(b) : collate;
  if (at > 0) {
    const began = performance.now();
    await head.click();
    timings[`sort by ${name.toLowerCase()}`] = `${Math.round(performance.now() - began)} ms`;
    sorted(await column(tab, at), compare);
    assert.equal(await tab.locator("th").nth(at).getAttribute("aria-sort"), "ascending");
  } else {
    await head.click();
    sorted(await column(tab, at), (a, b) => compare(b, a));
    assert.equal(await tab.locator("th").nth(at).getAttribute("aria-sort"), "descending");
    continue;
  }
  await head.click();
  sorted(await column(tab, at), (a, b) => compare(b, a));
}

await tab.selectOption("#severity", "high");
const high = await fitting(tab);
assert(high > 0 && high < total && (await column(tab, 0)).every((severity) => severity === "high"));
assert.equal(await tab.locator("#shown").textContent(), `${high} of ${total} findings`);
await tab.selectOption("#severity", "");
const [namespace] = await column(tab, 1);
await tab.selectOption("#namespace", namespace);
assert((await column(tab, 1)).every((one) => one === namespace));
await tab.selectOption("#namespace", "");
const release = (await column(tab, 2)).at(-1);
await tab.fill("#text", release.toUpperCase());
assert((await fitting(tab)) > 0 && (await fitting(tab)) < total, "the text narrows");
await tab.fill("#text", "");
if (total > 500) await tab.locator("#more").click();
assert.equal((await column(tab, 2)).length, total);
await tab.emulateMedia({ colorScheme: "dark" });
const ground = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
assert.notEqual(ground, "rgb(251, 251, 250)", "it has a dark side");
await shot(tab, "scan-dark.png");
await tab.emulateMedia({ media: "print", colorScheme: "light" });
assert.equal(await tab.locator(".controls").isVisible(), false);
assert.deepEqual(desk.complaints, []);
assert.equal(desk.requests.length, 1, `nothing but the page is loaded: ${desk.requests}`);

// On a phone.
const phone = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
const wide = await phone.tab.evaluate(() => document.documentElement.scrollWidth);
assert(wide <= 390, `it is ${wide} pixels wide`);
await phone.tab.selectOption("#sort", "2");
sorted(await column(phone.tab, 2), collate);
await phone.tab.selectOption("#sort", "0");
await shot(phone.tab, "scan-phone.png");
assert.deepEqual(phone.complaints, []);

await browser.close();
console.log(JSON.stringify({ findings: total, opened: `${desk.opened} ms`, ...timings }));
