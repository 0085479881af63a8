// The grid: as many elements as fit the window, whatever the number of rows. An element stands for the row at
// its index modulo their number, so scrolling by one row rewrites one element.

import { h, setText } from './dom.js';
import { cellText, isAbsent, ratioTone, toneOf } from './columns.js';
import { widths } from './widths.js';

/** @import { Column } from './columns.js' */
/** @import { Row, RowStore } from './rows.js' */
/** @import { SortKey } from './state.js' */

/** Rows above and below the window that are ready before they are seen. */
const MARGIN = 8;

/**
 * @typedef {object} Slot an element and what it shows
 * @property {HTMLDivElement} element
 * @property {{ cell: HTMLDivElement, dot: HTMLSpanElement, text: HTMLSpanElement }[]} cells
 * @property {Row | null} row
 * @property {number} index
 * @property {number} revision
 * @property {string} mark
 */

export class Grid {
  /**
   * @param {RowStore} store
   * @param {{ open: (row: Row) => void, sort: (keys: SortKey[]) => void }} actions
   */
  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    this.activeKey = '';
    this.openKey = '';
    this.compact = matchMedia('(max-width: 640px)');
    /** @type {Slot[]} */
    this.slots = [];
    /** @type {Column[]} */
    this.columns = [];
    this.shownRows = -1;

    this.head = h('div', { class: 'grid-head', role: 'row', 'aria-rowindex': 1 });
    this.body = h('div', { class: 'grid-body', role: 'rowgroup' });
    this.element = h('div', {
      class: 'grid', role: 'grid', tabindex: 0, 'aria-label': 'Objects', 'aria-readonly': 'true',
      onscroll: () => this.render(),
      onclick: (/** @type {MouseEvent} */ event) => this.#clicked(event),
      onmouseover: (/** @type {MouseEvent} */ event) => this.#hovered(event),
    }, h('div', { role: 'rowgroup', class: 'grid-head-group' }, this.head), this.body);
    new ResizeObserver(() => this.render()).observe(this.element);
    this.compact.addEventListener('change', () => this.layout());
  }

  get rowHeight() {
    return this.compact.matches ? 60 : 30;
  }

  /** The columns are others, or their widths: everything is drawn anew. */
  layout() {
    this.columns = this.store.columns;
    this.body.replaceChildren();
    this.slots = [];
    const columns = widths(this.columns, this.store.view);
    this.element.style.setProperty('--columns', columns.map(({ least, good }) => `minmax(${least}px, ${good}fr)`).join(' '));
    // Cards, on a phone, are as wide as the window.
    const width = this.compact.matches ? 0 : columns.reduce((sum, { least }) => sum + least, 0);
    this.element.style.setProperty('--columns-width', `${width}px`);
    this.element.style.setProperty('--row-height', `${this.rowHeight}px`);
    this.element.setAttribute('aria-colcount', String(this.columns.length));
    this.#drawHead();
    this.shownRows = -1;
    this.render();
  }

  #drawHead() {
    const { sort } = this.store;
    const { activeElement } = document;
    const focused = activeElement instanceof HTMLElement && this.head.contains(activeElement) ? activeElement.dataset.column : undefined;
    this.head.replaceChildren(...this.columns.map((column, at) => {
      const place = sort.findIndex((key) => key.column === column.name);
      const key = sort[place];
      const direction = key ? (key.descending ? 'descending' : 'ascending') : 'none';
      return h('div', { role: 'columnheader', class: `head-cell is-${column.meaning}`, 'aria-sort': direction, 'aria-colindex': at + 1 },
        h('button', {
          type: 'button', title: column.description, 'data-column': column.name,
          onclick: (/** @type {MouseEvent} */ event) => this.sortBy(column.name, event.shiftKey),
        }, column.name, key && h('span', { class: 'sort-mark', 'aria-hidden': 'true' },
          key.descending ? '↓' : '↑', sort.length > 1 && h('sup', {}, place + 1))));
    }));
    const again = [...this.head.querySelectorAll('button')].find((button) => button.dataset.column === focused);
    again?.focus();
  }

  /** Ascending, then descending, then not at all; with `more`, beside the keys that are there. @param {string} name @param {boolean} more */
  sortBy(name, more) {
    const { sort } = this.store;
    const current = sort.find((key) => key.column === name);
    const next = !current ? { column: name, descending: false } : current.descending ? null : { column: name, descending: true };
    if (!more) this.actions.sort(next ? [next] : []);
    else if (!current) this.actions.sort([...sort, { column: name, descending: false }]);
    else this.actions.sort(sort.flatMap((key) => (key !== current ? [key] : next ? [next] : [])));
  }

  /**
   * Runs a change of the view so that the rows in the window stay where they are, unless the window is at the top.
   * @param {() => void} change
   */
  keepingPlace(change) {
    const top = this.element.scrollTop;
    const first = top > 0 ? this.store.view[Math.floor(top / this.rowHeight)] : undefined;
    const before = first?.index ?? -1;
    change();
    this.#resize();
    if (first && first.index >= 0 && first.index !== before) {
      this.element.scrollTop = top + (first.index - before) * this.rowHeight;
    }
    this.render();
  }

  #resize() {
    const rows = this.store.view.length;
    if (rows === this.shownRows) return;
    this.shownRows = rows;
    this.body.style.height = `${rows * this.rowHeight}px`;
    this.element.setAttribute('aria-rowcount', String(rows + 1));
  }

  /** Draws what is in the window: only elements whose row, place or state is another one are touched. */
  render() {
    this.#resize();
    const { view } = this.store;
    const height = this.rowHeight;
    const top = this.element.scrollTop;
    const windowRows = Math.ceil(this.element.clientHeight / height) + 1;
    const first = Math.max(0, Math.floor(top / height) - MARGIN);
    const last = Math.min(view.length, Math.floor(top / height) + windowRows + MARGIN);
    this.#haveSlots(windowRows + 2 * MARGIN);
    const now = Date.now();
    const used = new Set();
    for (let index = first; index < last; index += 1) {
      const slot = this.slots[index % this.slots.length];
      const row = view[index];
      if (!slot || !row) continue;
      used.add(slot);
      this.#draw(slot, row, index, now);
    }
    for (const slot of this.slots) {
      if (used.has(slot) || slot.row === null) continue;
      slot.row = null;
      slot.element.hidden = true;
    }
    const active = this.slots.find((slot) => slot.row && slot.row.key === this.activeKey);
    if (active) this.element.setAttribute('aria-activedescendant', active.element.id);
    else this.element.removeAttribute('aria-activedescendant');
  }

  /** The number only grows: with another number every element stands for another row. @param {number} wanted */
  #haveSlots(wanted) {
    if (wanted <= this.slots.length) return;
    for (const slot of this.slots) slot.row = null;
    while (this.slots.length < wanted) {
      const cells = this.columns.map((column, at) => {
        const dot = h('span', { class: 'dot', 'aria-hidden': 'true' });
        const text = h('span', { class: 'cell-text' });
        const cell = h('div', { role: 'gridcell', class: `cell is-${column.meaning}`, 'aria-colindex': at + 1, 'data-label': column.name }, dot, text);
        return { cell, dot, text };
      });
      const element = h('div', { class: 'row', role: 'row', id: `row-${this.slots.length}` }, ...cells.map(({ cell }) => cell));
      element.hidden = true;
      this.body.append(element);
      this.slots.push({ element, cells, row: null, index: -1, revision: -1, mark: '' });
    }
  }

  /** @param {Slot} slot @param {Row} row @param {number} index @param {number} now */
  #draw(slot, row, index, now) {
    const { element } = slot;
    const fresh = slot.row !== row;
    if (fresh || slot.index !== index) {
      slot.index = index;
      element.style.transform = `translateY(${index * this.rowHeight}px)`;
      element.setAttribute('aria-rowindex', String(index + 2));
      element.classList.toggle('is-odd', index % 2 === 1);
    }
    if (fresh || slot.revision !== row.revision || slot.mark !== row.mark) this.#drawRow(slot, row, now, fresh);
    const selected = row.key === this.activeKey;
    if ((element.getAttribute('aria-selected') === 'true') !== selected) element.setAttribute('aria-selected', String(selected));
    element.classList.toggle('is-open', row.key === this.openKey);
  }

  /** @param {Slot} slot @param {Row} row @param {number} now @param {boolean} fresh */
  #drawRow(slot, row, now, fresh) {
    slot.row = row;
    slot.revision = row.revision;
    slot.mark = row.mark;
    slot.element.hidden = false;
    slot.element.dataset.key = row.key;
    slot.element.dataset.mark = row.mark;
    // Two names for the same animation: changing between them starts it again.
    slot.element.dataset.turn = String(row.revision % 2);
    this.columns.forEach((column, at) => {
      const parts = slot.cells[at];
      if (!parts) return;
      const text = cellText(row, column, now);
      setText(parts.text, text);
      if (fresh) parts.cell.removeAttribute('title');
      const tone = column.meaning === 'status' ? toneOf(text) : column.meaning === 'ratio' ? ratioTone(row, text) : '';
      parts.cell.dataset.tone = isAbsent(text) ? 'absent' : tone;
      const changed = row.mark === 'changed' && row.changedCells.has(column.cell);
      parts.cell.classList.toggle('is-changed', changed);
    });
  }

  /** Lets the ages in the window grow. */
  tick() {
    const now = Date.now();
    const ages = this.columns.flatMap((column, at) => (column.meaning === 'age' || column.meaning === 'ago' ? [{ column, at }] : []));
    for (const slot of this.slots) {
      if (!slot.row) continue;
      for (const { column, at } of ages) {
        const parts = slot.cells[at];
        if (parts) setText(parts.text, cellText(slot.row, column, now));
      }
    }
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const row = this.#rowAt(event);
    // Text that was just selected with the mouse is to be copied, not a click.
    if (!row || getSelection()?.isCollapsed === false) return;
    this.setActive(row.key);
    this.actions.open(row);
  }

  /** A text that does not fit is shown whole when pointed at. @param {MouseEvent} event */
  #hovered(event) {
    const cell = event.target instanceof Element ? event.target.closest('.cell') : null;
    const text = cell?.querySelector('.cell-text');
    if (cell && text && text.scrollWidth > text.clientWidth) cell.setAttribute('title', text.textContent ?? '');
  }

  /** @param {MouseEvent} event */
  #rowAt(event) {
    const element = event.target instanceof Element ? event.target.closest('.row') : null;
    return this.slots.find((slot) => slot.element === element)?.row ?? null;
  }

  /** @param {string} key */
  setActive(key) {
    this.activeKey = key;
    this.render();
  }

  get active() {
    const row = this.store.rows.get(this.activeKey);
    return row && row.index >= 0 ? row : null;
  }

  /** Moves the active row by so many places, and the window with it. @param {number} by */
  move(by) {
    const { view } = this.store;
    if (view.length === 0) return;
    const from = this.active?.index ?? (by > 0 ? -1 : view.length);
    const target = view[Math.max(0, Math.min(view.length - 1, from + by))];
    if (!target) return;
    this.activeKey = target.key;
    this.reveal(target);
    this.render();
  }

  /** @param {Row} row */
  reveal(row) {
    const top = row.index * this.rowHeight;
    const height = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.rowHeight > this.element.scrollTop + height) this.element.scrollTop = top + this.rowHeight - height;
  }

  /** How many rows a page is. */
  get page() {
    return Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 2);
  }
}
