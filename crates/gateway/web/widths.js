// How wide the columns have to be, from a sample of what they hold: measured once per snapshot, so that
// nothing jumps while rows change.

import { cellText } from './columns.js';

/** @import { Column } from './columns.js' */
/** @import { Row } from './rows.js' */

const SAMPLE = 400;
/** What the style gives a cell at its sides, and a little for rounding. */
const PADDING = 22 + 4;
const WIDEST = { name: 460, namespace: 240, status: 220, age: 90, ratio: 120, number: 140, time: 160, ago: 120, text: 320 };

/** Columns that may be cut off when the window is narrow, and to what width. @type {Map<string, number>} */
const PRESSED = new Map([['name', 272], ['namespace', 90], ['status', 170], ['text', 98]]);

/** @type {CanvasRenderingContext2D | null} */
let canvas = null;

/**
 * The width of each column in pixels: a good one, and the least that it can be pressed to.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function widths(columns, rows) {
  const style = getComputedStyle(document.documentElement);
  const text = `13px ${style.getPropertyValue('--font-text')}`;
  const mono = `12.5px ${style.getPropertyValue('--font-mono')}`;
  const step = Math.max(1, Math.floor(rows.length / SAMPLE));
  const now = Date.now();
  return columns.map((column) => {
    // A bad status is bold.
    const font = column.meaning === 'name' ? mono : column.meaning === 'status' ? `600 ${text}` : text;
    let widest = measure(column.name, `600 12px ${style.getPropertyValue('--font-text')}`) + 14;
    let longest = '';
    for (let at = 0; at < rows.length; at += step) {
      const row = rows[at];
      const cell = row ? cellText(row, column, now) : '';
      if (cell.length > longest.length) longest = cell;
    }
    widest = Math.max(widest, measure(longest, font) + (column.meaning === 'status' ? 16 : 0));
    const floor = column.meaning === 'age' ? 48 : column.meaning === 'status' ? 90 : 40;
    const good = Math.round(Math.min(WIDEST[column.meaning], Math.max(floor, widest)) + PADDING);
    return { good, least: Math.min(good, PRESSED.get(column.meaning) ?? good) };
  });
}

/** @param {string} text @param {string} font */
function measure(text, font) {
  canvas ??= document.createElement('canvas').getContext('2d');
  if (!canvas) return text.length * 8;
  canvas.font = font;
  return canvas.measureText(text).width;
}
