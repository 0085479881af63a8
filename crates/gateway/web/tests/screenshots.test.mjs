// Pictures of the page for the documentation, in `docs/images`.

import assert from 'node:assert/strict';
import { mkdir, stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Cluster } from './cluster.mjs';
import { closePage, openBrowser, openPage, rowsOf } from './browser.mjs';

const FOLDER = fileURLToPath(new URL('../../../../docs/images/', import.meta.url));
const LARGEST = 300 * 1024;

describe('pictures', () => {
  let cluster;
  let browser;
  before(async () => {
    await mkdir(FOLDER, { recursive: true });
    cluster = await Cluster.start({ pods: 500, churn: 5 });
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  /** @param {any} page @param {string} name */
  async function take(page, name) {
    const path = `${FOLDER}gateway-${name}.png`;
    await page.screenshot({ path });
    const { size } = await stat(path);
    assert.ok(size < LARGEST, `${name} has ${size} bytes`);
    await closePage(page);
  }
  const size = { viewport: { width: 1280, height: 800 } };

  it('of the rows, light', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?sort=-Restarts`, size);
    await page.waitForFunction(() => document.querySelector('.row[data-mark]:not([data-mark=""])'));
    await take(page, 'light');
  });

  it('of a pod beside the rows, dark', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods?sort=-Restarts`, { ...size, colorScheme: 'dark' });
    await page.locator('.row:not([hidden])').first().click();
    await page.locator('.facts').waitFor();
    await page.waitForFunction(() => document.querySelector('.drawer')?.getAnimations().length === 0);
    await take(page, 'dark');
  });

  it('of one object', async () => {
    const page = await openPage(browser, `${cluster.url}/#/apps/v1/deployments`, size);
    const [first] = await rowsOf(page);
    await page.goto(`${cluster.url}/#/apps/v1/deployments?object=${first?.Namespace}/${first?.Name}&tab=owners`);
    await page.locator('.tree a').first().waitFor();
    await take(page, 'detail');
  });

  it('of the informers', async () => {
    const other = await openPage(browser, `${cluster.url}/#/core/v1/events`, size);
    const more = await openPage(browser, `${cluster.url}/#/core/v1/nodes`, size);
    const page = await openPage(browser, `${cluster.url}/#/health`, { ...size, rows: false });
    await page.waitForFunction(() => (document.querySelector('.spark-line')?.getAttribute('d') ?? '').split('L').length > 10);
    await closePage(other);
    await closePage(more);
    await take(page, 'health');
  });

  it('on a phone', async () => {
    const page = await openPage(browser, `${cluster.url}/#/core/v1/pods`, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true });
    await take(page, 'phone');
  });
});
