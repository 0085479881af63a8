// The rows of a stream: all of them by key, and the view: those that the free text lets through, in order.
// Changes wait in `pending`, one per object, until `flush`: once per frame, or not at all while paused.

import { columnsOf, cellText } from './columns.js';
import { comparison } from './order.js';

/** @import { ColumnDefinition } from './stream.js' */
/** @import { Column } from './columns.js' */
/** @import { SortKey } from './state.js' */
/** @import { Rank } from './order.js' */

/** @typedef {{ namespace?: string, name: string, uid?: string, created?: string, labels?: Record<string, string>, cells: unknown[] }} WireRow */
/**
 * @typedef {object} Row
 * @property {string} key
 * @property {string} namespace empty for objects of the cluster
 * @property {string} name
 * @property {number} created milliseconds, NaN when not known
 * @property {number} received when the server sent it
 * @property {string[]} cells
 * @property {string} haystack what the free text is looked for in, empty = not made yet
 * @property {Rank[] | null} ranks
 * @property {'' | 'added' | 'changed' | 'gone'} mark what happened to it last
 * @property {number} markedAt
 * @property {Set<number>} changedCells
 * @property {number} revision counts the changes
 * @property {number} index its place in the view, -1 outside
 */

/** How long a mark is shown, and how long a row that is gone stays. */
export const MARK_TIME = 1600;
export const GONE_TIME = 900;

/** @type {Set<number>} */
const NONE = new Set();

/**
 * @param {WireRow} wire
 * @param {number} ageCell where the server put the age: it is made here from the date, and is no change
 * @returns {Row}
 */
function rowOf(wire, ageCell) {
  return {
    key: wire.uid || `${wire.namespace ?? ''}/${wire.name}`,
    namespace: wire.namespace ?? '',
    name: wire.name,
    created: Date.parse(wire.created ?? ''),
    received: Date.now(),
    cells: wire.cells.map((cell, at) => (cell === null || cell === undefined || at === ageCell ? '' : String(cell))),
    haystack: '',
    ranks: null,
    mark: '',
    markedAt: 0,
    changedCells: NONE,
    revision: 0,
    index: -1,
  };
}

export class RowStore {
  constructor() {
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Row[]} */
    this.view = [];
    /** @type {Column[]} */
    this.columns = [];
    /** @type {ColumnDefinition[]} */
    this.definitions = [];
    this.ageCell = -1;
    this.namespaced = false;
    this.wide = false;
    this.paused = false;
    /** @type {Map<string, Row | null>} the newest state of what changed, `null` = deleted */
    this.pending = new Map();
    /** @type {Map<string, Row> | null} a snapshot on its way */
    this.arriving = null;
    this.expected = 0;
    /** Whether a snapshot was complete since `clear`. */
    this.complete = false;
    /** @type {string[]} */
    this.words = [];
    /** @type {SortKey[]} */
    this.sort = [];
    this.compare = comparison([], []);
    /** @type {Set<Row>} rows with a mark */
    this.marked = new Set();
  }

  /** Forgets everything: another query follows. @param {{ namespaced: boolean }} options whether rows show their namespace */
  clear({ namespaced }) {
    this.rows.clear();
    this.pending.clear();
    this.marked.clear();
    this.view = [];
    this.arriving = null;
    this.expected = 0;
    this.complete = false;
    this.definitions = [];
    this.namespaced = namespaced;
    this.#arrange();
  }

  /** @param {number} total @param {ColumnDefinition[]} definitions */
  beginSnapshot(total, definitions) {
    this.arriving = new Map();
    this.expected = total;
    if (JSON.stringify(definitions) !== JSON.stringify(this.definitions)) {
      this.definitions = definitions;
      this.#arrange();
    }
  }

  /** @param {WireRow[]} items */
  addItems(items) {
    for (const item of items) {
      const row = rowOf(item, this.ageCell);
      this.arriving?.set(row.key, row);
    }
  }

  /** The snapshot is complete. A first one is shown as it is; a later one as the changes that it amounts to. */
  commitSnapshot() {
    const arrived = this.arriving ?? new Map();
    this.arriving = null;
    if (!this.complete) {
      this.complete = true;
      this.rows = arrived;
      this.#rebuild();
      return;
    }
    this.pending.clear();
    for (const key of this.rows.keys()) if (!arrived.has(key)) this.pending.set(key, null);
    for (const row of arrived.values()) this.#await(row);
  }

  /** @param {'added' | 'modified' | 'deleted'} type @param {WireRow} wire */
  change(type, wire) {
    const row = rowOf(wire, this.ageCell);
    if (type !== 'deleted') this.#await(row);
    else if (this.rows.has(row.key)) this.pending.set(row.key, null);
    else this.pending.delete(row.key);
  }

  /** @param {Row} row */
  #await(row) {
    const known = this.rows.get(row.key);
    if (known && known.mark !== 'gone' && !this.pending.has(row.key) && sameCells(known, row)) return;
    this.pending.set(row.key, row);
  }

  /**
   * Brings what is pending into the rows and the view, and lets rows go whose time is over.
   * @param {number} now
   * @returns {boolean} whether the view is another one
   */
  flush(now) {
    const left = this.#expire(now);
    if (this.paused || !this.complete || this.pending.size === 0) return left;
    /** @type {Set<Row>} */
    const moved = new Set();
    for (const [key, next] of this.pending) {
      const row = this.rows.get(key);
      if (!next) {
        if (row) this.#mark(row, 'gone', now);
      } else if (!row || row.mark === 'gone') {
        if (row) this.marked.delete(row);
        if (row && row.index >= 0) moved.add(row);
        this.rows.set(key, next);
        this.#mark(next, 'added', now);
        moved.add(next);
      } else if (this.#update(row, next, now)) {
        moved.add(row);
      }
    }
    this.pending.clear();
    if (moved.size) this.#merge(moved);
    return true;
  }

  /** Takes the cells of a newer state over. @param {Row} row @param {Row} next @param {number} now @returns {boolean} whether its place may be another */
  #update(row, next, now) {
    row.changedCells = new Set(next.cells.flatMap((cell, at) => (cell === row.cells[at] ? [] : [at])));
    const before = { ...row };
    row.cells = next.cells;
    row.received = next.received;
    row.created = next.created;
    row.haystack = '';
    row.ranks = null;
    this.#mark(row, 'changed', now);
    return this.compare(before, row) !== 0 || this.#matches(row) !== row.index >= 0;
  }

  /** @param {Row} row @param {Row['mark']} mark @param {number} now */
  #mark(row, mark, now) {
    row.mark = mark;
    row.markedAt = now;
    row.revision += 1;
    this.marked.add(row);
  }

  /** @param {number} now */
  #expire(now) {
    /** @type {Set<Row>} */
    const gone = new Set();
    for (const row of this.marked) {
      if (now - row.markedAt < (row.mark === 'gone' ? GONE_TIME : MARK_TIME)) continue;
      this.marked.delete(row);
      if (row.mark === 'gone') {
        this.rows.delete(row.key);
        gone.add(row);
      } else {
        row.mark = '';
      }
    }
    if (gone.size) this.#merge(gone);
    return gone.size > 0;
  }

  /** How many objects are in the view and in all, without those that are only still fading. */
  get counts() {
    let shown = this.view.length;
    let total = this.rows.size;
    for (const row of this.marked) {
      if (row.mark !== 'gone') continue;
      total -= 1;
      if (row.index >= 0) shown -= 1;
    }
    return { shown, total };
  }

  /** @param {string} text */
  setText(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.#rebuild();
  }

  /** @param {SortKey[]} sort */
  setSort(sort) {
    this.sort = sort;
    this.#arrange();
  }

  /** @param {boolean} wide */
  setWide(wide) {
    this.wide = wide;
    this.#arrange();
  }

  /** Columns or order changed: what was derived from them is made anew. */
  #arrange() {
    this.ageCell = this.definitions.findIndex((definition) => definition.name === 'Age');
    this.columns = columnsOf(this.definitions, { wide: this.wide, namespaced: this.namespaced });
    const all = columnsOf(this.definitions, { wide: true, namespaced: this.namespaced });
    this.compare = comparison(this.sort, all);
    for (const row of this.rows.values()) {
      row.ranks = null;
      row.haystack = '';
    }
    this.#rebuild();
  }

  /** @param {Row} row */
  #matches(row) {
    if (this.words.length === 0) return true;
    row.haystack ||= this.columns.map((column) => column.meaning === 'age' ? '' : cellText(row, column, row.received)).join('\n').toLowerCase();
    return this.words.every((word) => row.haystack.includes(word));
  }

  #rebuild() {
    for (const row of this.view) row.index = -1;
    this.view = [...this.rows.values()].filter((row) => this.#matches(row)).sort(this.compare);
    this.#number();
  }

  /** Takes these rows out of the view and puts those back, in their places, that still belong. @param {Set<Row>} moved */
  #merge(moved) {
    const entering = [...moved].filter((row) => this.rows.get(row.key) === row && this.#matches(row)).sort(this.compare);
    /** @type {Row[]} */
    const view = [];
    let next = 0;
    for (const row of this.view) {
      if (moved.has(row)) {
        row.index = -1;
        continue;
      }
      for (let candidate = entering[next]; candidate && this.compare(candidate, row) < 0; candidate = entering[next]) {
        view.push(candidate);
        next += 1;
      }
      view.push(row);
    }
    for (const row of entering.slice(next)) view.push(row);
    this.view = view;
    this.#number();
  }

  #number() {
    for (let index = 0; index < this.view.length; index += 1) {
      const row = this.view[index];
      if (row) row.index = index;
    }
  }
}

/** @param {Row} a @param {Row} b */
function sameCells(a, b) {
  return a.cells.length === b.cells.length && a.cells.every((cell, at) => cell === b.cells[at]);
}
