// JSON as YAML: lines of coloured tokens, drawn as text nodes. What comes out reads back as the same value.

import { fill, h } from './dom.js';

/** @typedef {'key' | 'text' | 'number' | 'word' | 'sign'} TokenKind */
/** @typedef {[TokenKind, string]} Token */
/** @typedef {Token[]} Line */

/** Words that mean something else than text in some version of YAML. */
const WORDS = /^(~|null|true|false|yes|no|on|off|y|n)$/i;
const NUMBER = /^[-+]?(\.?\d|0x|0o|\.inf|\.nan)/i;
const DATE = /^\d{4}-\d{2}-\d{2}/;
const PLAIN = /^[\p{L}\p{N}_/.$(][^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]*$/u;

/** @param {string} text @returns {string} */
export function scalar(text) {
  const plain = PLAIN.test(text) && !WORDS.test(text) && !NUMBER.test(text) && !DATE.test(text)
    && !/: |:$| #|\s$/.test(text) && text !== '.';
  // JSON's quoting is YAML's, but for characters that YAML wants escaped and JSON does not.
  return plain ? text : JSON.stringify(text).replace(/[\x7f-\x9f\u2028\u2029\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Whether a text can be written as a block of lines. @param {string} text */
function isBlock(text) {
  return /[^\n]\n/.test(text) && !/^\s/.test(text) && !/[ \t]\n|[ \t]$/.test(text)
    && !/[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]/.test(text);
}

/** @param {unknown} value @returns {Line[]} */
export function toYaml(value) {
  /** @type {Line[]} */
  const lines = [];
  write(value, 0, [], lines);
  return lines;
}

/** The text of lines. @param {Line[]} lines */
export function yamlText(lines) {
  return lines.map((line) => line.map(([, text]) => text).join('')).join('\n') + '\n';
}

/**
 * Writes a value after `lead`, which is what stands before it on its first line.
 * @param {unknown} value @param {number} depth @param {Line} lead @param {Line[]} lines
 */
function write(value, depth, lead, lines) {
  const indent = '  '.repeat(depth);
  if (Array.isArray(value) && value.length > 0) {
    if (lead.length) lines.push(lead);
    for (const item of value) writeItem(item, depth, lines);
  } else if (isMap(value) && Object.keys(value).length > 0) {
    if (lead.length) lines.push(lead);
    for (const [key, member] of Object.entries(value)) writeMember(key, member, depth, [['sign', indent]], lines);
  } else if (typeof value === 'string' && isBlock(value)) {
    const kept = /\n*$/.exec(value)?.[0].length ?? 0;
    lines.push([...spaced(lead), ['sign', kept === 0 ? '|-' : kept === 1 ? '|' : '|+']]);
    const body = kept === 0 ? value : value.slice(0, -1);
    for (const line of body.split('\n')) lines.push(line ? [['text', indent + line]] : []);
  } else {
    lines.push([...spaced(lead), simple(value)]);
  }
}

/** @param {unknown} item @param {number} depth @param {Line[]} lines */
function writeItem(item, depth, lines) {
  /** @type {Line} */
  const lead = [['sign', `${'  '.repeat(depth)}-`]];
  if (isMap(item) && Object.keys(item).length > 0) {
    Object.entries(item).forEach(([key, member], at) => {
      writeMember(key, member, depth + 1, at === 0 ? [...lead, ['sign', ' ']] : [['sign', '  '.repeat(depth + 1)]], lines);
    });
  } else {
    write(item, depth + 1, lead, lines);
  }
}

/** @param {string} key @param {unknown} member @param {number} depth @param {Line} before @param {Line[]} lines */
function writeMember(key, member, depth, before, lines) {
  /** @type {Line} */
  const lead = [...before, ['key', scalar(key)], ['sign', ':']];
  // A list of a member stands under it without a step to the right, as kubectl writes it.
  write(member, Array.isArray(member) ? depth : depth + 1, lead, lines);
}

/** @param {Line} lead @returns {Line} */
function spaced(lead) {
  return lead.length ? [...lead, ['sign', ' ']] : lead;
}

/** @param {unknown} value @returns {Token} */
function simple(value) {
  if (typeof value === 'string') return ['text', scalar(value)];
  if (typeof value === 'number') return ['number', String(value)];
  if (Array.isArray(value)) return ['sign', '[]'];
  if (typeof value === 'object' && value !== null) return ['sign', '{}'];
  return ['word', String(value)];
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isMap(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Past so many lines colours cost more than they help. */
const MOST_COLOURED = 5000;

/**
 * Draws lines; those that were not there before are marked.
 * @param {HTMLElement} host
 * @param {Line[]} lines
 * @param {Set<string> | null} before the lines of the version before, `null` when there was none
 * @returns {Set<string>} the lines of now
 */
export function drawYaml(host, lines, before) {
  const texts = new Set(lines.map((line) => yamlText([line])));
  if (lines.length > MOST_COLOURED) {
    fill(host, yamlText(lines));
    return texts;
  }
  fill(host, ...lines.map((line) => {
    const isNew = before !== null && !before.has(yamlText([line]));
    return h('div', { class: isNew ? 'yaml-line is-new' : 'yaml-line' },
      ...line.map(([kind, text]) => (kind === 'sign' ? text : h('span', { class: `yaml-${kind}` }, text))), line.length === 0 && '\n');
  }));
  return texts;
}
