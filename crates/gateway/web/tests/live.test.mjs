// Rows that come, change and go, and holding them back.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, expectNames, live, openBrowser, openPage, rowOf } from './browser.mjs';

/** What a gateway would send. */
const row = (/** @type {string} */ name) => ({ name, namespace: 'made', uid: name, cells: [name] });
const text = (/** @type {any[][]} */ ...events) => events.map(([event, data, id]) => `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('');
const columns = [{ name: 'Name', type: 'string', format: 'name' }];

describe('live rows', () => {
  let cluster;
  let browser;
  before(async () => {
    cluster = await Cluster.start();
    browser = await openBrowser();
    for (const name of ['shop', 'other', 'held', 'back']) await cluster.namespace(name);
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  it('appear, change with the changed cell marked, and go', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?namespace=shop`, { rows: false });
    await page.getByText('No pods match').waitFor();
    const pod = await cluster.pod('shop', 'web-1', { phase: 'Pending' });
    await cluster.pod('shop', 'web-0');
    await cluster.pod('other', 'not-shown');
    await expectNames(page, ['web-0', 'web-1']);
    assert.equal(await rowOf(page, 'web-0').locator('.is-status').getAttribute('data-tone'), 'good');
    assert.equal(await rowOf(page, 'web-1').locator('.is-status').getAttribute('data-tone'), 'wait');

    // The mark is there for a moment only: it is watched for from before the change on.
    const marked = page.waitForFunction(() => {
      const cells = [...document.querySelectorAll('.row[data-mark="changed"] .cell.is-status.is-changed')];
      return cells.some((cell) => cell.textContent === 'Running' && cell.closest('.row')?.querySelector('.is-name')?.textContent === 'web-1');
    }, null, { polling: 'raf' });
    await cluster.podPhase(pod, 'Running');
    await marked;

    const leaving = page.waitForFunction(() => document.querySelector('.row[data-mark="gone"] .is-name')?.textContent, null, { polling: 'raf' });
    await cluster.send('DELETE', '/api/v1/namespaces/shop/pods/web-0?gracePeriodSeconds=0');
    assert.equal(await (await leaving).jsonValue(), 'web-0');
    await page.waitForFunction(() => document.querySelectorAll('.row:not([hidden])').length === 1);
    await expectNames(page, ['web-1']);
    assert.equal(await page.locator('.count').textContent(), '1 of 1');
    await closePage(page);
  });

  it('wait while paused, are counted, and come when it goes on', async () => {
    await cluster.configMap('held', 'first', { a: '1' });
    const page = await openPage(browser, `${cluster.url}/#/core/v1/configmaps?namespace=held`);
    await expectNames(page, ['first']);
    await page.keyboard.press('p');
    await page.waitForSelector('.state[data-phase="paused"]');
    await cluster.configMap('held', 'second', {});
    await cluster.configMap('held', 'third', {});
    await page.getByText('paused · 2 changes waiting').waitFor();
    await expectNames(page, ['first']);
    await page.getByRole('button', { name: 'Resume' }).click();
    await expectNames(page, ['first', 'second', 'third']);
    await page.waitForSelector('.state[data-phase="live"]');
    await closePage(page);
  });

  it('go on from the last that was heard, and begin anew when the server says so', async () => {
    const page = await openPage(browser, 'about:blank', { rows: false, direct: true });
    const bodies = [
      text(['snapshot', { total: 2, columns }], ['items', { items: [row('a'), row('b')] }], ['synced', {}, '5'], ['end', { reason: 'slow client', retryAfterMs: 10 }]),
      text(['added', { row: row('c') }, '6'], ['end', { reason: 'slow client', retryAfterMs: 10 }]),
      text(['reset', { reason: 'too late', total: 2, columns }], ['items', { items: [row('c'), row('d')] }], ['synced', {}, '9']),
    ];
    const heard = [];
    await page.route('**/_stream/**', (route) => {
      heard.push(route.request().headers()['last-event-id']);
      const body = bodies.shift();
      return body ? route.fulfill({ contentType: 'text/event-stream', body }) : route.abort();
    });
    await page.goto(`${cluster.url}/#/core/v1/pods`);
    await expectNames(page, ['c', 'd']);
    await page.getByText(/reconnecting in \d+ s/).waitFor();
    assert.deepEqual(heard.slice(0, 3), [undefined, '5', '6']);
    await page.waitForFunction(() => document.querySelectorAll('.row:not([hidden])').length === 2);
    await closePage(page);
  });

  it('stay while access cannot be checked, and go when it is revoked', async () => {
    const page = await openPage(browser, 'about:blank', { rows: false, direct: true });
    const all = text(['snapshot', { total: 2, columns }], ['items', { items: [row('a'), row('b')] }], ['synced', {}, '5']);
    const answers = [
      { body: all + text(['end', { reason: 'access cannot be checked', retryAfterMs: 2000 }]) },
      { status: 503, json: { kind: 'Status', message: 'the cluster does not answer' } },
      { body: text(['added', { row: row('c') }, '6'], ['end', { reason: 'access revoked', retryAfterMs: 2000 }, '']) },
      { status: 403, json: { kind: 'Status', message: 'no longer' } },
      { body: all },
    ];
    const heard = [];
    await page.route('**/_stream/**', (route) => {
      heard.push(route.request().headers()['last-event-id']);
      const answer = answers.shift();
      return answer ? route.fulfill({ contentType: 'text/event-stream', ...answer }) : route.abort();
    });
    await page.goto(`${cluster.url}/#/core/v1/pods`);
    const state = page.locator('.state-text');
    await state.getByText(/^access cannot be checked · reconnecting in \d+ s$/).waitFor();
    await expectNames(page, ['a', 'b']);
    await page.getByRole('button', { name: 'Reconnecting: the cluster does not answer' }).waitFor();
    await expectNames(page, ['a', 'b']);
    await state.getByText(/^access revoked · reconnecting/).waitFor();
    await expectNames(page, ['a', 'b', 'c']);
    await page.getByText('You may not see this').waitFor();
    await page.locator('.grid').waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Try again', exact: true }).click();
    await expectNames(page, ['a', 'b']);
    assert.deepEqual(heard.slice(0, 5), [undefined, '5', '5', undefined, undefined]);
    await closePage(page);
  });

  it('stay while the gateway is away, and are right again when it is back', async () => {
    await cluster.configMap('back', 'keeps', {});
    await cluster.configMap('back', 'goes', {});
    const page = await openPage(browser, `${cluster.url}/#/core/v1/configmaps?namespace=back`);
    await expectNames(page, ['goes', 'keeps']);
    await cluster.stopGateway();
    await page.waitForSelector('.state[data-phase="waiting"]');
    await expectNames(page, ['goes', 'keeps']);
    await cluster.send('DELETE', '/api/v1/namespaces/back/configmaps/goes');
    await cluster.configMap('back', 'new', {});
    await cluster.startGateway(cluster.url.replace('http://', ''));
    await live(page);
    await expectNames(page, ['keeps', 'new']);
    await closePage(page);
  });
});
