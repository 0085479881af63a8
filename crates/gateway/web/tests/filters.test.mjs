// Choosing what to see: kinds, namespaces, labels, fields, text, order; and what the server refuses.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, expectNames, live, openBrowser, openPage, rowsOf } from './browser.mjs';

describe('filters', () => {
  let cluster;
  let browser;
  before(async () => {
    cluster = await Cluster.start();
    browser = await openBrowser();
    for (const name of ['one', 'two', 'three']) await cluster.namespace(name);
    await cluster.pod('one', 'api-1', { labels: { app: 'api', tier: 'back' } });
    await cluster.pod('one', 'api-2', { labels: { app: 'api', tier: 'front' }, phase: 'Pending' });
    await cluster.pod('two', 'web-1', { labels: { app: 'web' } });
    await cluster.pod('three', 'web-2', { labels: { app: 'web' } });
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });
  const open = (/** @type {string} */ query = '', options = {}) => openPage(browser, `${cluster.url}/#/core/v1/pods${query}`, options);

  it('by labels and by fields are applied by the server and stand in the address', async () => {
    const page = await open();
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    await page.getByLabel('Labels', { exact: true }).fill('app=api');
    await page.keyboard.press('Enter');
    await expectNames(page, ['api-1', 'api-2']);
    assert.match(page.url(), /labelSelector=app=api/);
    await page.getByLabel('Fields', { exact: true }).fill('status.phase!=Running');
    await page.keyboard.press('Enter');
    await expectNames(page, ['api-2']);
    await page.goBack();
    await expectNames(page, ['api-1', 'api-2']);
    await page.getByRole('button', { name: 'Clear: Labels' }).click();
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    await closePage(page);
  });

  it('that cannot be read are marked at the place', async () => {
    const page = await open();
    await page.getByLabel('Fields', { exact: true }).fill('status..phase=Running');
    await page.keyboard.press('Enter');
    const error = page.locator('#fields-error');
    await error.waitFor();
    assert.match(await error.textContent() ?? '', /expected a field name at byte 7/);
    assert.equal(await error.locator('.field-place').textContent(), 'status..phase=Running');
    assert.equal(await error.locator('mark').textContent(), '.');
    assert.equal(await page.getByLabel('Fields', { exact: true }).getAttribute('aria-invalid'), 'true');
    await page.getByLabel('Labels', { exact: true }).fill('a===b');
    await page.getByLabel('Fields', { exact: true }).fill('');
    await page.keyboard.press('Enter');
    await page.locator('#labels-error').waitFor();
    assert.equal(await page.locator('#labels-error mark').textContent(), '=');
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    await closePage(page);
  });

  it('by text are applied to what is shown, all words', async () => {
    const page = await open();
    await page.keyboard.press('f');
    await page.keyboard.type('web');
    await expectNames(page, ['web-2', 'web-1']);
    assert.equal(await page.locator('.count').textContent(), '2 of 4');
    await page.keyboard.type(' three');
    await expectNames(page, ['web-2']);
    await page.keyboard.type(' nothing');
    await page.getByText('No pods match').waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    await closePage(page);
  });

  it('by namespace take one or several', async () => {
    const page = await open();
    await page.getByLabel('Namespace', { exact: true }).click();
    await page.keyboard.type('two');
    await page.keyboard.press('Enter');
    await expectNames(page, ['web-1']);
    await page.keyboard.press('n');
    await page.keyboard.type('one');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.press('Escape');
    await expectNames(page, ['api-1', 'api-2', 'web-1']);
    assert.match(page.url(), /namespace=two&namespace=one/);
    await closePage(page);
  });

  it('by a namespace that is typed, where none may be listed', async () => {
    const page = await openPage(browser, 'about:blank', { rows: false });
    await page.route('**/core/v1/namespaces?*', (route) => route.fulfill({ status: 403, json: { kind: 'Status', message: 'no' } }));
    await page.goto(`${cluster.url}/#/core/v1/pods?namespace=elsewhere`);
    await page.getByText('No pods match').waitFor();
    await page.keyboard.press('n');
    const options = () => page.getByRole('option').allTextContents();
    assert.deepEqual(await options(), ['All namespaces', 'elsewhere']);
    for (const [typed, offered] of [['Two', 'Use “two”'], ['-no', null], ['a.b', null], ['x'.repeat(63), `Use “${'x'.repeat(63)}”`], ['x'.repeat(64), null]]) {
      await page.getByRole('combobox').fill(String(typed));
      assert.deepEqual(await options(), offered ? [offered] : [], String(typed));
    }
    await page.getByRole('combobox').fill('else');
    assert.deepEqual(await options(), ['elsewhere', 'Use “else”']);
    await page.getByRole('combobox').fill('two');
    await page.keyboard.press('Shift+Enter');
    await page.waitForURL(/namespace=elsewhere&namespace=two/);
    await page.keyboard.press('Escape');
    await expectNames(page, ['web-1']);
    // One that has no rows is there to be taken away.
    await page.keyboard.press('n');
    await page.getByRole('option', { name: 'elsewhere', checked: true }).locator('.option-box').click();
    await page.waitForURL(/\?namespace=two$/);
    await page.getByRole('combobox').fill('one');
    await page.keyboard.press('Enter');
    await expectNames(page, ['api-1', 'api-2']);
    await closePage(page);
  });

  it('have an order by any column, and by several', async () => {
    const page = await open();
    await page.getByRole('columnheader', { name: 'Name', exact: true }).getByRole('button').click();
    await expectNames(page, ['api-1', 'api-2', 'web-1', 'web-2']);
    await page.locator('.head-cell.is-name button').click();
    await expectNames(page, ['web-2', 'web-1', 'api-2', 'api-1']);
    await page.waitForSelector('[role="columnheader"][aria-sort="descending"]');
    await page.getByRole('columnheader', { name: 'Status' }).getByRole('button').click();
    await page.getByRole('columnheader', { name: 'Name', exact: true }).getByRole('button').click({ modifiers: ['Shift'] });
    const statuses = (await rowsOf(page)).map((row) => row.Status);
    assert.deepEqual(statuses, [...statuses].sort());
    assert.match(page.url(), /sort=Status,Name/);
    await closePage(page);
  });

  it('by status are one press away, with their counts', async () => {
    const page = await open();
    await page.getByRole('button', { name: '3 Running' }).click();
    await expectNames(page, ['api-1', 'web-2', 'web-1']);
    assert.match(page.url(), /q=Running/);
    await page.getByRole('button', { name: '3 Running' }).click();
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    await closePage(page);
  });

  it('show all columns when wide', async () => {
    const page = await open();
    assert.equal(await page.getByRole('columnheader', { name: 'Node', exact: true }).count(), 0);
    await page.getByRole('button', { name: 'Wide' }).click();
    await page.getByRole('columnheader', { name: 'Node', exact: true }).waitFor();
    await closePage(page);
  });

  it('start from a kind that is found by its short name', async () => {
    const page = await open('?namespace=one');
    await page.keyboard.press('/');
    await page.keyboard.type('cm');
    await page.getByRole('option').first().getByText('ConfigMap', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/core\/v1\/configmaps\?namespace=one/);
    await page.keyboard.press('Control+k');
    await page.getByText('Recently used').waitFor();
    assert.deepEqual((await page.getByRole('option').allTextContents()).slice(0, 2).map((text) => text.match(/^(ConfigMap|Pod)/)?.[0]), ['ConfigMap', 'Pod']);
    await page.keyboard.type('no such kind');
    await page.getByText('Nothing is called').waitFor();
    await page.keyboard.press('Escape');
    await closePage(page);
  });

  it('of a link are all set, and back and forward walk through the views', async () => {
    const page = await open('?namespace=one&labelSelector=app=api&fieldSelector=status.phase=Running&q=api&sort=-Name&wide=1&object=one/api-1&tab=yaml');
    await expectNames(page, ['api-1']);
    assert.equal(await page.getByLabel('Labels', { exact: true }).inputValue(), 'app=api');
    assert.equal(await page.getByLabel('Fields', { exact: true }).inputValue(), 'status.phase=Running');
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), 'api');
    assert.equal(await page.getByRole('button', { name: 'Wide' }).getAttribute('aria-pressed'), 'true');
    await page.locator('.yaml').getByText('name: api-1').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.drawer').waitFor({ state: 'hidden' });
    await page.goBack();
    await page.locator('.yaml').waitFor();
    await page.goForward();
    await page.locator('.drawer').waitFor({ state: 'hidden' });
    await closePage(page);
  });

  it('for a kind that is not there show what the server says', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/podds`, { rows: false });
    await page.getByText('There is no such kind in this cluster').waitFor();
    assert.match(await page.locator('.message-said').textContent() ?? '', /pods/);
    await closePage(page);
  });

  it('are answered with the words of the server when it says no', async () => {
    for (const [status, title] of [[403, 'You may not see this'], [507, 'The gateway has no memory left for another kind']]) {
      const page = await openPage(browser, 'about:blank', { rows: false, direct: true });
      await page.route('**/_stream/**', (route) => route.fulfill({ status: Number(status), json: { kind: 'Status', message: `because of ${status}` } }));
      await page.goto(`${cluster.url}/#/core/v1/pods`);
      await page.getByText(String(title)).waitFor();
      await page.getByText(`because of ${status}`).waitFor();
      await page.unroute('**/_stream/**');
      await page.getByRole('button', { name: 'Try again', exact: true }).click();
      await live(page);
      await closePage(page);
    }
  });

  it('are asked with a token when the gateway wants one', async () => {
    const page = await openPage(browser, 'about:blank', { rows: false, direct: true });
    const tokens = new Set();
    const guard = (/** @type {any} */ route) => {
      const token = route.request().headers().authorization;
      tokens.add(token);
      return token === 'Bearer secret' ? route.continue() : route.fulfill({ status: 401, json: { kind: 'Status', message: 'who are you?' } });
    };
    await page.route('**/_resources', guard);
    await page.route('**/_stream/**', guard);
    await page.goto(`${cluster.url}/#/core/v1/pods`);
    await page.getByLabel('Bearer token').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('The gateway did not take that token.').waitFor();
    await page.getByLabel('Bearer token').fill('secret');
    await page.keyboard.press('Enter');
    await live(page);
    await expectNames(page, ['api-1', 'api-2', 'web-2', 'web-1']);
    assert.deepEqual([...tokens], [undefined, 'Bearer wrong', 'Bearer secret']);
    assert.deepEqual(await page.evaluate(() => [document.cookie, JSON.stringify(localStorage).includes('secret')]), ['', false]);
    await closePage(page);
  });
});
