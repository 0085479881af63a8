// The order of rows: by several columns, each compared by what it means (numbers, quantities, times, text).

import { cellText } from './columns.js';
import { parseDuration } from './format.js';

/** @import { SortKey } from './state.js' */
/** @import { Column } from './columns.js' */
/** @import { Row } from './rows.js' */

/** @typedef {number | string} Rank numbers come before text */

const FACTORS = new Map(Object.entries({
  n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
}));

/** `250m`, `1.5Gi`, `42` by value; NaN for anything else. @param {string} text */
export function parseQuantity(text) {
  const match = /^([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(text);
  return match ? Number(match[1]) * (match[2] ? FACTORS.get(match[2]) ?? NaN : 1) : NaN;
}

/** What a row is compared by in one column. @param {Row} row @param {Column} column @returns {Rank} */
export function rank(row, column) {
  // The younger an object, the smaller its age.
  if (column.meaning === 'age' && !Number.isNaN(row.created)) return -row.created;
  const text = cellText(row, column, row.received);
  if (column.meaning === 'name' || column.meaning === 'namespace') return text;
  if (column.meaning === 'ago') {
    const passed = parseDuration(text);
    return Number.isNaN(passed) ? text.toLowerCase() : passed * 1000 - row.received;
  }
  if (column.meaning === 'time') {
    const time = parseDuration(text.replace(/ ago\b.*/, ''));
    return Number.isNaN(time) ? text.toLowerCase() : time;
  }
  const ratio = /^(\d+)\/(\d+)$/.exec(text);
  if (ratio) return Number(ratio[1]) + Number(ratio[2]) / 1e6;
  // `3 (5m ago)`: the number counts.
  const number = parseQuantity(text.replace(/ \(.*\)$/, ''));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

/** @param {Rank} a @param {Rank} b */
function compareRanks(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === 'number' ? -1 : 1;
}

/**
 * A comparison by these keys, then by namespace and name. Ranks are kept in the row until `forgetRanks`.
 * @param {SortKey[]} keys
 * @param {Column[]} columns
 * @returns {(a: Row, b: Row) => number}
 */
export function comparison(keys, columns) {
  const sorted = keys.flatMap((key) => {
    const column = columns.find((candidate) => candidate.name === key.column);
    return column ? [{ column, sign: key.descending ? -1 : 1 }] : [];
  });
  /** @param {Row} row */
  const ranksOf = (row) => (row.ranks ??= sorted.map(({ column }) => rank(row, column)));
  return (a, b) => {
    if (sorted.length) {
      const ranksA = ranksOf(a);
      const ranksB = ranksOf(b);
      for (let at = 0; at < sorted.length; at += 1) {
        const order = compareRanks(ranksA[at] ?? '', ranksB[at] ?? '');
        if (order !== 0) return order * (sorted[at]?.sign ?? 1);
      }
    }
    if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
    if (a.name !== b.name) return a.name < b.name ? -1 : 1;
    return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
  };
}
