// How many rows have which status, the bad ones first: pressing one filters by its word.

import { fill, h } from './dom.js';
import { count } from './format.js';
import { toneOf } from './columns.js';

/** @import { RowStore } from './rows.js' */

const MOST = 4;
/** Counting all rows is cheap, but not every frame. */
const PERIOD = 400;
const ORDER = ['bad', 'wait', 'good', 'done', ''];

export class Summary {
  /** @param {(word: string) => void} filter */
  constructor(filter) {
    this.filter = filter;
    this.element = h('div', { class: 'summary', role: 'group', 'aria-label': 'By status' });
    this.drawn = '';
    this.next = 0;
    this.text = '';
  }

  /** @param {RowStore} store @param {string} text the free text that is set @param {number} now */
  show(store, text, now) {
    if (now < this.next && text === this.text) return;
    this.text = text;
    this.next = store.complete ? now + PERIOD : 0;
    const column = store.columns.find(({ meaning, name }) => meaning === 'status' && name !== 'Type');
    /** @type {Map<string, number>} */
    const counts = new Map();
    if (column && store.complete) {
      for (const row of store.view) {
        const word = row.mark === 'gone' ? '' : row.cells[column.cell] ?? '';
        if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
      }
    }
    const sorted = [...counts].map(([word, rows]) => ({ word, rows, tone: toneOf(word) }))
      .sort((a, b) => ORDER.indexOf(a.tone) - ORDER.indexOf(b.tone) || b.rows - a.rows);
    // A column that has a word for every row, like a date, says nothing in sum.
    const telling = sorted.some(({ tone }) => tone !== '') ? sorted.slice(0, MOST) : [];
    const state = JSON.stringify([telling, text]);
    if (state === this.drawn) return;
    this.drawn = state;
    fill(this.element, ...telling.map(({ word, rows, tone }) => h('button', {
      type: 'button', class: 'summary-part', 'data-tone': tone, 'aria-pressed': String(text === word),
      title: text === word ? 'Show all again' : `Show only ${word}`, onclick: () => this.filter(text === word ? '' : word),
    }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('strong', {}, count(rows)), ` ${word}`)));
  }
}
