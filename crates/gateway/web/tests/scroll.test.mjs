// Thirty thousand rows: few elements, the right ones, and frames that come.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, live, openBrowser, openPage, rowsOf } from './browser.mjs';

const PODS = 30_000;

describe('thirty thousand rows', () => {
  let cluster;
  let browser;
  before(async () => {
    cluster = await Cluster.start({ pods: PODS });
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  it('scroll with few elements and show the right rows at the end', async (t) => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods`, { rows: false });
    page.setDefaultTimeout(240_000);
    await live(page);
    const total = Number((await page.locator('.count').textContent() ?? '').split(' of ')[1]?.replaceAll(',', ''));
    assert.ok(Math.abs(total - PODS) < PODS / 100, `${total} pods`);

    const measured = await page.evaluate(async () => {
      const grid = /** @type {HTMLElement} */ (document.querySelector('.grid'));
      const frames = [];
      let most = 0;
      let wrong = 0;
      let last = performance.now();
      for (let frame = 0; frame < 120; frame += 1) {
        grid.scrollTop += frame < 60 ? 95 : (grid.scrollHeight - grid.scrollTop) / 8;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
        most = Math.max(most, document.querySelectorAll('.row').length);
        // What stands in the middle of the window is the row that belongs there.
        const box = grid.getBoundingClientRect();
        const row = document.elementFromPoint(box.left + 60, box.top + box.height / 2)?.closest('.row');
        const wanted = Math.floor((grid.scrollTop + box.height / 2 - 34) / 30) + 2;
        if (!row || Math.abs(Number(row.getAttribute('aria-rowindex')) - wanted) > 1) wrong += 1;
      }
      frames.sort((a, b) => a - b);
      return { most, wrong, median: frames[60] ?? 0, slow: frames[113] ?? 0 };
    });
    t.diagnostic(`frames while scrolling: median ${measured.median.toFixed(1)} ms, 95 % under ${measured.slow.toFixed(1)} ms; ${measured.most} rows drawn at most`);
    assert.ok(measured.most < 80, `${measured.most} elements`);
    assert.ok(measured.wrong <= 2, `the wrong row in the middle in ${measured.wrong} of 120 frames`);
    assert.ok(measured.median < 100, `a frame takes ${measured.median} ms`);

    await page.locator('.grid').focus();
    await page.keyboard.press('End');
    await page.waitForSelector('.row[aria-selected="true"]');
    const rows = await rowsOf(page);
    const { last, count } = await page.evaluate(() => ({
      last: Math.max(...[...document.querySelectorAll('.row:not([hidden])')].map((row) => Number(row.getAttribute('aria-rowindex')))),
      count: Number(document.querySelector('.grid')?.getAttribute('aria-rowcount')),
    }));
    assert.equal(last, total + 1);
    assert.equal(count, total + 1);
    const listed = await cluster.send('GET', '/api/v1/pods');
    const order = listed.items.map((/** @type {any} */ pod) => `${pod.metadata.namespace} ${pod.metadata.name}`).sort((/** @type {string} */ a, /** @type {string} */ b) => (a < b ? -1 : 1));
    assert.deepEqual(rows.map((row) => `${row.Namespace} ${row.Name}`), order.slice(-rows.length));
    await closePage(page);
  });

  it('are filtered by text and sorted at once', async (t) => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods`, { rows: false });
    page.setDefaultTimeout(240_000);
    await live(page);
    const began = performance.now();
    await page.keyboard.press('f');
    await page.keyboard.type('kafka-0');
    await page.waitForFunction((all) => {
      const [shown] = (document.querySelector('.count')?.textContent ?? '').split(' of ');
      return Number(shown?.replaceAll(',', '')) < all / 10;
    }, PODS);
    assert.ok((await rowsOf(page)).every((row) => JSON.stringify(row).includes('kafka-0')));
    await page.keyboard.press('Escape');
    await page.getByRole('columnheader', { name: 'Age' }).getByRole('button').click();
    await page.waitForSelector('[aria-sort="ascending"]');
    t.diagnostic(`typed, filtered and sorted in ${(performance.now() - began).toFixed(0)} ms`);
    await closePage(page);
  });
});
