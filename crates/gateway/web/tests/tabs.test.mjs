// Many tabs of one browser, which has six connections for a server over plain HTTP: streams share four of them.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { expectNames, live, openBrowser, openTab, rowOf, until } from './browser.mjs';
import { Proxy } from './proxy.mjs';

const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'main:1' }] } };
const spec = { selector: { matchLabels: { app: 'web' } }, template };

/** What tabs look at, where the API server has it, and what such an object needs. */
const KINDS = [
  ['core/v1/pods', '/api/v1/namespaces/shop/pods', { spec: template.spec }],
  ['core/v1/pods?namespace=shop', null, {}],
  ['core/v1/services', '/api/v1/namespaces/shop/services', { spec: { ports: [{ port: 80 }] } }],
  ['core/v1/configmaps', '/api/v1/namespaces/shop/configmaps', {}],
  ['core/v1/configmaps', null, {}],
  ['core/v1/serviceaccounts', '/api/v1/namespaces/shop/serviceaccounts', {}],
  ['core/v1/nodes', '/api/v1/nodes', {}],
  ['core/v1/namespaces', '/api/v1/namespaces', {}],
  ['apps/v1/deployments', '/apis/apps/v1/namespaces/shop/deployments', { spec }],
  ['apps/v1/replicasets', '/apis/apps/v1/namespaces/shop/replicasets', { spec }],
];

describe('many tabs', () => {
  let cluster;
  let proxy;
  let browser;
  let context;
  before(async () => {
    cluster = await Cluster.start();
    proxy = await Proxy.start(() => cluster.url);
    browser = await openBrowser();
    await cluster.namespace('shop');
  });
  after(async () => {
    await browser?.close();
    await proxy?.stop();
    await cluster?.stop();
  });
  beforeEach(async () => {
    proxy.expired.clear();
    context = await browser.newContext({ viewport: { width: 1000, height: 700 } });
  });
  afterEach(async () => {
    const problems = context.pages().flatMap((page) => page.problems);
    await context.close();
    await streams(0);
    assert.deepEqual(problems, []);
  });

  const open = (/** @type {string} */ route) => openTab(context, `${proxy.url}/#/${route}`);
  const openAll = () => Promise.all(KINDS.map(([route]) => open(String(route))));
  /** Makes an object of each kind, which every tab has to show. */
  async function change(/** @type {any[]} */ tabs, /** @type {string} */ name) {
    for (const [, path, body] of KINDS) if (path) await cluster.send('POST', String(path), { metadata: { name }, ...Object(body) });
    for (const tab of tabs) await rowOf(tab, name).waitFor();
  }
  /** Waits until the gateway has so many streams, over no more than four connections. */
  async function streams(/** @type {number} */ count) {
    let open = NaN;
    await until(async () => {
      open = (await (await fetch(`${cluster.url}/_informers`)).json()).streams;
      return open === count && proxy.streams.size <= 4;
    }, () => `${open} streams over ${proxy.streams.size} connections`);
  }

  it('are all live over four connections, and ordinary requests are answered', async () => {
    const tabs = await openAll();
    await streams(10);
    await change(tabs, 'later');
    const [tab] = tabs;
    await rowOf(tab, 'later').click();
    await tab.getByRole('tab', { name: 'Owners' }).click();
    await tab.locator('.tree').getByText('this').waitFor();
    await streams(11);
    await change(tabs, 'last');
  });

  it('that are closed leave nothing behind, and the others go on', async () => {
    const tabs = await openAll();
    await streams(10);
    const left = tabs.filter((_, at) => at % 3 === 0);
    await Promise.all(tabs.filter((_, at) => at % 3 !== 0).map((tab) => tab.close()));
    await streams(left.length);
    await change(left, 'remains');
  });

  it('come back when the gateway does, or a connection is lost', async () => {
    const tabs = await openAll();
    await streams(10);
    await cluster.stopGateway();
    await Promise.all(tabs.map((tab) => tab.waitForSelector('.state[data-phase="waiting"]')));
    await cluster.startGateway(cluster.url.replace('http://', ''));
    await Promise.all(tabs.map(live));
    await streams(10);
    await change(tabs, 'again');
    for (const stream of proxy.streams) stream.cut();
    await change(tabs, 'anew');
    await Promise.all(tabs.map(live));
    await streams(10);
  });

  it('that wait for a token, or are refused, do not concern the others', async () => {
    const tabs = await openAll();
    proxy.expired.add(undefined);
    const other = await openTab(context, `${proxy.url}/#/core/v1/endpoints`, { rows: false });
    await other.getByLabel('Bearer token').fill('mine');
    proxy.expired.clear();
    await other.keyboard.press('Enter');
    await live(other);
    for (const { of, token } of proxy.streams) assert.equal(token, of.some((stream) => stream.startsWith('core/v1/endpoints')) ? 'mine' : undefined);
    const refused = await openTab(context, `${proxy.url}/#/core/v1/podds`, { rows: false });
    await refused.getByText('There is no such kind in this cluster').waitFor();
    const unreadable = await openTab(context, `${proxy.url}/#/core/v1/pods?labelSelector=a===b`, { rows: false });
    await unreadable.locator('#labels-error').waitFor();
    await streams(11);
    await change(tabs, 'beside');
    // A token that is no longer good is asked for again, by the tab that has it.
    proxy.expired.add('mine');
    for (const stream of proxy.streams) if (stream.token) stream.cut();
    await other.getByLabel('Bearer token').fill('new');
    await other.keyboard.press('Enter');
    await live(other);
    await streams(11);
  });
});
