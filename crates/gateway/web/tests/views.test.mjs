// The page as people have it: by keyboard, in the dark, on a phone, with a screen reader; and the health view.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Cluster } from './cluster.mjs';
import { closePage, live, openBrowser, openPage, rowsOf } from './browser.mjs';

describe('the page', () => {
  let cluster;
  let browser;
  before(async () => {
    cluster = await Cluster.start({ pods: 120 });
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });
  const open = (options = {}) => openPage(browser, `${cluster.url}/`, options);
  const selected = (/** @type {any} */ page) => page.locator('.row[aria-selected="true"]').getAttribute('aria-rowindex');

  it('is used with the keyboard alone', async () => {
    const page = await open();
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    assert.equal(await selected(page), '3');
    await page.keyboard.press('PageDown');
    assert.ok(Number(await selected(page)) > 20);
    await page.keyboard.press('Home');
    assert.equal(await selected(page), '2');
    await page.keyboard.press('End');
    assert.equal(await selected(page), await page.locator('.grid').getAttribute('aria-rowcount'));
    const name = await page.locator('.row[aria-selected="true"] .is-name').textContent();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: name ?? '' }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('.yaml').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.drawer').waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'grid');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('f');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'text');
    await page.keyboard.type('jp');
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), 'jp');
    await page.keyboard.press('Escape');
    await page.getByLabel('Text', { exact: true }).fill('');
    await page.getByRole('columnheader', { name: 'Age' }).getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[role="columnheader"][aria-sort="descending"]');
    await page.keyboard.press('h');
    await page.waitForURL(/#\/health/);
    await closePage(page);
  });

  it('hears the key behind the one that closes a dialog', async () => {
    const page = await open();
    await page.keyboard.press('n');
    await page.getByRole('dialog', { name: 'Namespaces' }).waitFor();
    // The focus leaves a closed dialog only with the next frame.
    const opened = await page.evaluate(() => {
      const dialog = /** @type {HTMLDialogElement} */ (document.querySelector('dialog[open]'));
      dialog.close();
      dialog.querySelector('input')?.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true }));
      return dialog.open;
    });
    assert.ok(opened);
    await closePage(page);
  });

  it('scrolls to the object that a link names', async () => {
    const page = await open();
    await page.keyboard.press('End');
    const [last] = (await rowsOf(page)).slice(-1);
    await closePage(page);
    const linked = await openPage(browser, `${cluster.url}/#/core/v1/pods?object=${last?.Namespace}/${last?.Name}`);
    await linked.locator('.row.is-open', { hasText: last?.Name ?? '' }).waitFor();
    assert.ok(await linked.locator('.grid').evaluate((grid) => grid.scrollTop > 0));
    await closePage(linked);
  });

  it('tells a screen reader what is there', async () => {
    const page = await open();
    const grid = page.getByRole('grid');
    assert.ok(Number(await grid.getAttribute('aria-rowcount')) > 100);
    assert.ok(await grid.getByRole('columnheader').count() >= 5);
    await page.keyboard.press('j');
    const active = await grid.getAttribute('aria-activedescendant');
    assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
    assert.equal(await page.locator('[role="status"][aria-live="polite"]').textContent(), 'live');
    const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input, select, a')]
      .filter((element) => !(element.textContent?.trim() || element.getAttribute('aria-label') || element.getAttribute('aria-labelledby') || document.querySelector(`label[for="${element.id}"]`)))
      .map((element) => element.outerHTML));
    assert.deepEqual(unnamed, []);
    await closePage(page);
  });

  it('has text that can be read in both themes', async () => {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const page = await open({ colorScheme });
      const faint = await page.evaluate(() => {
        const context = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d', { willReadFrequently: true }));
        const rgb = (/** @type {string} */ colour) => {
          context.clearRect(0, 0, 1, 1);
          context.fillStyle = colour;
          context.fillRect(0, 0, 1, 1);
          return [...context.getImageData(0, 0, 1, 1).data];
        };
        const luminance = (/** @type {number[]} */ parts) => parts.slice(0, 3)
          .map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, at) => sum + part * ([0.2126, 0.7152, 0.0722][at] ?? 0), 0);
        const behind = (/** @type {Element | null} */ element) => {
          for (let at = element; at; at = at.parentElement) {
            const parts = rgb(getComputedStyle(at).backgroundColor);
            if (parts[3] === 255) return parts;
          }
          return [255, 255, 255, 255];
        };
        const found = new Set();
        for (const element of document.querySelectorAll('.cell-text, .head-cell button, .count, label, .state-text, .tool-text, .kind-path, .kind-name, .brand span')) {
          if (!element.textContent || !element.checkVisibility()) continue;
          const [a, b] = [luminance(rgb(getComputedStyle(element).color)), luminance(behind(element))];
          const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (contrast < 4.5) found.add(`${element.className || element.tagName} “${element.textContent}”: ${contrast.toFixed(2)}`);
        }
        return [...found];
      });
      assert.deepEqual(faint, [], colorScheme);
      await closePage(page);
    }
  });

  it('is dark when the system is, and otherwise when told', async () => {
    const shade = (/** @type {any} */ page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const page = await open({ colorScheme: 'dark' });
    assert.equal(await shade(page), 'rgb(15, 20, 22)');
    await page.keyboard.press('t');
    assert.equal(await shade(page), 'rgb(250, 249, 246)');
    await page.reload();
    await live(page);
    assert.equal(await shade(page), 'rgb(250, 249, 246)');
    await page.keyboard.press('t');
    assert.equal(await shade(page), 'rgb(15, 20, 22)');
    await closePage(page);
  });

  it('fits a phone', async () => {
    const page = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const width = () => page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector('.grid')?.scrollWidth ?? 0));
    assert.equal(await width(), 390);
    const [first] = await rowsOf(page);
    await page.getByText(first?.Name ?? '').first().waitFor();
    for (const part of ['.is-name', '.is-status', '.is-age', '.is-namespace']) {
      const box = await page.locator(`.row:not([hidden]) ${part}`).first().boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${part} is in the window`);
    }
    await page.getByLabel('Labels', { exact: true }).waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Filters' }).click();
    await page.getByLabel('Labels', { exact: true }).waitFor();
    await page.getByLabel('Sort').selectOption('-Name');
    await page.getByRole('button', { name: 'Show the rows' }).click();
    const names = (await rowsOf(page)).map((row) => row.Name);
    assert.deepEqual(names, [...names].sort().reverse());
    await page.locator('.row:not([hidden])').first().click();
    await page.waitForFunction(() => document.querySelector('.drawer')?.getAnimations().length === 0);
    const drawer = await page.locator('.drawer').boundingBox();
    assert.deepEqual([drawer?.x, drawer?.y, drawer?.width, drawer?.height], [0, 0, 390, 844]);
    await page.locator('.facts').waitFor();
    assert.equal(await width(), 390);
    await closePage(page);
  });

  it('keeps still when motion is not wanted', async () => {
    const page = await open({ reducedMotion: 'reduce' });
    await cluster.namespace('quiet');
    await cluster.pod('quiet', 'still');
    await page.waitForFunction(() => document.querySelectorAll('.row').length > 0);
    assert.deepEqual(await page.evaluate(() => document.getAnimations().map((animation) => animation.constructor.name)), []);
    await closePage(page);
  });

  it('shows the informers with their figures, and leads to their objects', async () => {
    const page = await open();
    await page.getByRole('link', { name: 'Health' }).click();
    const row = page.locator('tr[data-path="core/v1/pods"]');
    await row.getByText('synced').waitFor();
    assert.match(await row.textContent() ?? '', /Pod.*core\/v1\/pods.*MiB|KiB/);
    await page.getByRole('meter', { name: 'Memory' }).waitFor();
    await page.waitForFunction(() => document.querySelector('tr[data-path="core/v1/pods"] .spark-line'));
    await row.getByRole('link', { name: 'Pod' }).click();
    await live(page);
    await closePage(page);
  });
});
