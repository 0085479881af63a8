// The browser, and pages of the gateway in it. A page collects whatever goes wrong in it.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const ARGUMENTS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

/** How long a page may take for something: generous, because machines that test are busy. */
const PATIENCE = 60_000;

export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGUMENTS });
}

/**
 * Opens a page at a route in a browser of its own, and waits for its rows unless told not to. With `direct` its streams do not
 * go through the worker that tabs share: `page.route` hears of requests of the page only.
 */
export async function openPage(browser, address, { rows = true, direct = false, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  if (direct) await context.addInitScript('delete globalThis.SharedWorker');
  return openTab(context, address, { rows });
}

/**
 * Opens one more page in the same browser.
 * @returns a Playwright page with `problems`: errors of scripts and of the content policy
 */
export async function openTab(context, address, { rows = true } = {}) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.problems.push(message.text());
  });
  await page.goto(address);
  if (rows) await live(page);
  return page;
}

/** Closes a page in which nothing may have gone wrong. */
export async function closePage(page) {
  const { problems } = page;
  await page.context().close();
  assert.deepEqual(problems, []);
}

/** Waits until the rows are there and follow the cluster. */
export async function live(page) {
  await page.waitForSelector('.state[data-phase="live"]');
  await page.waitForSelector('.grid:not([hidden])');
}

/** Waits until something holds that no page shows. */
export async function until(holds, what) {
  for (const end = Date.now() + PATIENCE; !(await holds());) {
    assert.ok(Date.now() < end, typeof what === 'function' ? what() : what);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

/** The rows that are drawn, from top to bottom, as `{ name: cell … }`. */
export function rowsOf(page) {
  return page.evaluate(() => [...document.querySelectorAll('.row:not([hidden])')]
    .map((row) => ({ row, at: Number(row.getAttribute('aria-rowindex')) }))
    .sort((a, b) => a.at - b.at)
    .map(({ row }) => Object.fromEntries([...row.querySelectorAll('.cell')].map((cell) => [cell.getAttribute('data-label'), cell.textContent]))));
}

/** The row of an object. */
export function rowOf(page, name) {
  return page.locator('.row:not([hidden])', { has: page.locator('.cell.is-name').getByText(name, { exact: true }) });
}

/** Waits until the drawn names are exactly these. */
export async function expectNames(page, names) {
  try {
    await page.waitForFunction((wanted) => {
      const rows = [...document.querySelectorAll('.row:not([hidden])')].filter((row) => row.getAttribute('data-mark') !== 'gone');
      rows.sort((a, b) => Number(a.getAttribute('aria-rowindex')) - Number(b.getAttribute('aria-rowindex')));
      const drawn = rows.map((row) => row.querySelector('.cell.is-name')?.textContent);
      return JSON.stringify(drawn) === JSON.stringify(wanted);
    }, names);
  } catch {
    assert.deepEqual((await rowsOf(page)).map((row) => row.Name), names);
  }
}
