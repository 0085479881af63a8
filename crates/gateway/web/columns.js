// The columns of the grid: which are shown, what each means, and how a cell looks.

import { age, duration, parseDuration } from './format.js';

/** @import { ColumnDefinition } from './stream.js' */
/** @import { Row } from './rows.js' */

/** @typedef {'name' | 'namespace' | 'status' | 'age' | 'ratio' | 'number' | 'time' | 'ago' | 'text'} Meaning `ago` grows with the clock, `time` does not */
/** @typedef {'good' | 'wait' | 'bad' | 'done' | ''} Tone */
/**
 * @typedef {object} Column
 * @property {string} name
 * @property {string} description
 * @property {Meaning} meaning
 * @property {number} cell the place in a row's cells; -1 for the namespace, which the server gives beside them
 */

const STATUS = /^(status|phase|state|type|health|condition|available|synced|established|approved|suspend)$/i;
const AGO = /^(last .*|.* seen|since)$/i;
const TIME = /age|duration|schedule|expires/i;

/**
 * What is shown of the server's columns.
 * @param {ColumnDefinition[]} definitions
 * @param {{ wide: boolean, namespaced: boolean }} options
 * @returns {Column[]}
 */
export function columnsOf(definitions, { wide, namespaced }) {
  /** @type {Column[]} */
  const columns = definitions
    .map((definition, cell) => ({ definition, cell }))
    .filter(({ definition }) => wide || !definition.priority)
    .map(({ definition, cell }) => ({
      name: definition.name,
      description: definition.description ?? '',
      meaning: meaningOf(definition),
      cell,
    }));
  if (namespaced && !definitions.some((definition) => definition.name === 'Namespace')) {
    columns.unshift({ name: 'Namespace', description: 'The namespace of the object.', meaning: 'namespace', cell: -1 });
  }
  return columns;
}

/** @param {ColumnDefinition} definition @returns {Meaning} */
function meaningOf({ name, type, format }) {
  if (format === 'name' || name === 'Name') return 'name';
  if (name === 'Age') return 'age';
  if (type === 'integer' || type === 'number') return 'number';
  if (STATUS.test(name)) return 'status';
  if (name === 'Ready' || name === 'Completions') return 'ratio';
  if (AGO.test(name)) return 'ago';
  if (type === 'date' || TIME.test(name)) return 'time';
  return 'text';
}

/** @param {Row} row @param {Column} column @param {number} now */
export function cellText(row, column, now) {
  if (column.cell < 0) return row.namespace;
  if (column.meaning === 'age' && !Number.isNaN(row.created)) return age(row.created, now);
  const text = row.cells[column.cell] ?? '';
  if (column.meaning !== 'ago') return text;
  // The server said how long ago it was when it sent the row.
  const passed = parseDuration(text);
  return Number.isNaN(passed) ? text : duration(passed + (now - row.received) / 1000);
}

const BAD = /error|fail|back-?off|crash|evict|oom|invalid|lost|notready|deadline|unhealthy|killed|degraded|unknown|mismatch|denied/i;
const WAIT = /pending|creating|initializing|^init:|terminating|progress|waiting|released|disabled|suspend|warning|provisioning|deleting|unschedulable|gated/i;
const DONE = /^(completed?|succeeded|finished)$/i;
const GOOD = /^(running|ready|bound|active|available|true|healthy|normal|established|synced|approved.*|deployed|ok|up|alive|online)$/i;

/** What a status means, from its words: it colours the dot beside the text and never stands alone. @param {string} text @returns {Tone} */
export function toneOf(text) {
  if (DONE.test(text)) return 'done';
  if (BAD.test(text)) return 'bad';
  if (WAIT.test(text)) return 'wait';
  if (GOOD.test(text)) return 'good';
  return '';
}

/** A `1/2` that is not full yet; a pod that is done never will be. @param {Row} row @param {string} text @returns {Tone} */
export function ratioTone(row, text) {
  const match = /^(\d+)\/(\d+)$/.exec(text);
  if (!match || match[1] === match[2] || row.cells.some((cell) => DONE.test(cell))) return '';
  return 'wait';
}

/** Whether the text says that there is nothing to say: shown faintly. @param {string} text */
export function isAbsent(text) {
  return text === '' || /^<(none|unset|unknown|nil)>$/.test(text);
}
