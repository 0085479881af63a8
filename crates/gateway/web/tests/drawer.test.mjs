// One object in full: overview, YAML, owners and events, live while it is open.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, live, openBrowser, openPage, rowOf } from './browser.mjs';

describe('the drawer', () => {
  let cluster;
  let browser;
  let pod;
  before(async () => {
    cluster = await Cluster.start();
    browser = await openBrowser();
    await cluster.namespace('shop');
    const labels = { app: 'web' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'main:1' }] } };
    const spec = { selector: { matchLabels: labels }, template };
    const deployment = await cluster.send('POST', '/apis/apps/v1/namespaces/shop/deployments', { metadata: { name: 'web' }, spec });
    const owner = (/** @type {any} */ object, /** @type {string} */ kind) => [{ apiVersion: 'apps/v1', kind, name: object.metadata.name, uid: object.metadata.uid, controller: true }];
    const set = await cluster.send('POST', '/apis/apps/v1/namespaces/shop/replicasets', { metadata: { name: 'web-5d', ownerReferences: owner(deployment, 'Deployment') }, spec });
    pod = await cluster.pod('shop', 'web-5d-x1', { labels, annotations: { note: 'line one\nline two' }, ownerReferences: owner(set, 'ReplicaSet') });
    await cluster.pod('shop', 'web-5d-x2', { labels, ownerReferences: owner(set, 'ReplicaSet') });
    await cluster.event(pod, 'Pod', 'Unhealthy', 'Readiness probe failed');
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  it('opens on a click with metadata, labels, containers and conditions', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?namespace=shop`);
    await rowOf(page, 'web-5d-x1').click();
    const drawer = page.getByRole('dialog', { name: 'web-5d-x1' });
    await drawer.getByText(pod.metadata.uid).waitFor();
    await drawer.getByRole('link', { name: 'ReplicaSet/web-5d' }).waitFor();
    await drawer.getByRole('cell', { name: 'Ready', exact: true }).waitFor();
    await drawer.getByText('registry.example.com/main:1').waitFor();
    await drawer.getByRole('button', { name: 'app web' }).click();
    await page.waitForURL(/labelSelector=app=web/);
    await closePage(page);
  });

  it('shows the object as YAML, with what changes while it is open', async () => {
    const made = await cluster.configMap('shop', 'settings', { mode: 'slow', 'multi.txt': 'a\nb\n' });
    const page = await openPage(browser, `${cluster.url}/#/core/v1/configmaps?namespace=shop&object=shop/settings&tab=yaml`);
    const yaml = page.locator('.yaml');
    await yaml.getByText('mode: slow').waitFor();
    const lines = await yaml.locator('.yaml-line').allTextContents();
    assert.deepEqual(lines.slice(0, 2), ['apiVersion: v1', 'kind: ConfigMap']);
    assert.ok(lines.join('\n').includes('  multi.txt: |\n    a\n    b'), lines.join('\n'));
    assert.ok(!lines.join('\n').includes('managedFields'));
    await cluster.send('PUT', '/api/v1/namespaces/shop/configmaps/settings', { ...made, data: { mode: 'fast' } });
    await yaml.locator('.is-new').getByText('mode: fast').waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied').waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^apiVersion: v1\nkind: ConfigMap\n[^]*  mode: fast\n/);
    await cluster.send('DELETE', '/api/v1/namespaces/shop/configmaps/settings');
    await page.getByText('This object was deleted').waitFor();
    await closePage(page);
  });

  it('follows owners up and down, and each leads to its object', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?object=shop/web-5d-x1&tab=owners`);
    const tree = page.locator('.tree');
    await tree.waitFor();
    const lines = () => tree.locator('.tree-line').evaluateAll((nodes) => nodes.map((node) => [...node.children].map((child) => child.textContent).join(' ')));
    assert.deepEqual(await lines(), ['Deployment web', 'ReplicaSet web-5d', 'Pod web-5d-x1 this']);
    await tree.getByRole('link', { name: 'Deployment web' }).click();
    await page.waitForURL(/#\/apps\/v1\/deployments\?object=shop\/web&tab=owners/);
    await tree.getByText('this').waitFor();
    assert.deepEqual(await lines(), ['Deployment web this', 'ReplicaSet web-5d', 'Pod web-5d-x1', 'Pod web-5d-x2']);
    await page.goBack();
    await page.getByRole('dialog', { name: 'web-5d-x1' }).waitFor();
    await closePage(page);
  });

  it('shows the events about the object, as they come', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?object=shop/web-5d-x1&tab=events`);
    await page.locator('.event').getByText('Readiness probe failed').waitFor();
    await page.locator('.event').getByText('× 3').waitFor();
    await cluster.event(pod, 'Pod', 'Killing', 'Stopping container main', 'Normal');
    await page.locator('.event').getByText('Stopping container main').waitFor();
    assert.equal(await page.locator('.event').count(), 2);
    await closePage(page);
  });

  it('says when there is no such object, and shows it when it comes', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?object=shop/later`);
    await page.getByText('There is no Pod of that name').waitFor();
    await cluster.pod('shop', 'later');
    await page.locator('.drawer .facts').waitFor();
    await live(page);
    await closePage(page);
  });
});
