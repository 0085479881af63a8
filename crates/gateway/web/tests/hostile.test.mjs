// Text from the cluster is shown as text, whatever it looks like.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, openBrowser, openPage, rowOf } from './browser.mjs';

const IMAGE = '<img src=x onerror="window.broken=1">';
const NAME = '<img src=x onerror=window.broken=1>';

describe('hostile text', () => {
  let cluster;
  let browser;
  before(async () => {
    cluster = await Cluster.start();
    browser = await openBrowser();
    await cluster.namespace('shop');
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  /** Nothing of it became an element or ran. */
  async function expectHarmless(page) {
    assert.deepEqual(await page.evaluate(() => [/** @type {any} */ (window).broken, document.querySelectorAll('img').length, document.querySelectorAll('script').length]), [undefined, 1, 1]);
  }

  it('in annotations, data and events stays text', async () => {
    const made = await cluster.configMap('shop', 'odd', { [`script`]: `<script>window.broken=1</script>` }, { annotations: { note: IMAGE, link: 'javascript:window.broken=1' } });
    await cluster.event(made, 'ConfigMap', 'Odd', IMAGE);
    const page = await openPage(browser, `${cluster.url}/#/core/v1/configmaps?object=shop/odd`);
    await page.locator('.annotations').getByText(IMAGE).waitFor();
    await page.getByRole('tab', { name: 'YAML' }).click();
    await page.locator('.yaml').getByText('<script>window.broken=1</script>').waitFor();
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.locator('.event').getByText(IMAGE).waitFor();
    await page.getByRole('tab', { name: 'Owners' }).click();
    await page.locator('.tree').waitFor();
    await expectHarmless(page);
    await closePage(page);
  });

  it('in a name stays text, and the object opens', async () => {
    await cluster.send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name: NAME }, rules: [] });
    const page = await openPage(browser, `${cluster.url}/#/rbac.authorization.k8s.io/v1/clusterroles`);
    await rowOf(page, NAME).click();
    await page.getByRole('heading', { name: NAME }).waitFor();
    await page.locator('.facts').waitFor();
    await page.reload();
    await page.locator('.facts').waitFor();
    await expectHarmless(page);
    await closePage(page);
  });

  it('in labels and in an answer of the server stays text', async () => {
    // No API server takes such a label; one that is broken may send it.
    const page = await openPage(browser, 'about:blank', { rows: false, direct: true });
    const columns = [{ name: 'Name', type: 'string', format: 'name' }, { name: IMAGE, type: 'string', description: IMAGE }, { name: 'Status', type: 'string' }];
    const row = { namespace: 'shop', name: NAME, uid: 'u', created: '2026-01-01T00:00:00Z', labels: { [IMAGE]: IMAGE }, cells: [NAME, IMAGE, IMAGE] };
    const object = { metadata: { name: NAME, namespace: 'shop', uid: 'u', labels: { [IMAGE]: IMAGE }, ownerReferences: [{ apiVersion: IMAGE, kind: IMAGE, name: IMAGE, uid: IMAGE }] } };
    const events = (/** @type {any} */ item) => [['snapshot', { total: 1, columns }], ['items', { items: [item] }], ['synced', { count: 1 }]]
      .map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('');
    await page.route('**/_stream/**', (route) => route.fulfill({ contentType: 'text/event-stream', body: events(route.request().url().includes('as=table') ? row : object) }));
    await page.goto(`${cluster.url}/#/core/v1/pods`);
    await rowOf(page, NAME).first().click();
    await page.locator('.chip').getByText(IMAGE).first().waitFor();
    await page.getByText(`${IMAGE}/${IMAGE}`).waitFor();
    await page.unroute('**/_stream/**');
    await page.route('**/_stream/**', (route) => route.fulfill({ status: 403, json: { message: IMAGE } }));
    await page.goto(`${cluster.url}/#/core/v1/services`);
    await page.locator('.message-said').getByText(IMAGE).waitFor();
    await expectHarmless(page);
    await closePage(page);
  });

  it('in the address stays text', async () => {
    const hash = `#/${encodeURIComponent(IMAGE)}?labelSelector=${encodeURIComponent(IMAGE)}&q=${encodeURIComponent(IMAGE)}&namespace=${encodeURIComponent(IMAGE)}&object=${encodeURIComponent(IMAGE)}&tab=${encodeURIComponent(IMAGE)}`;
    const page = await openPage(browser, `${cluster.url}/${hash}`, { rows: false });
    await page.locator('.message-title.is-bad').waitFor();
    await expectHarmless(page);
    await closePage(page);
  });
});
