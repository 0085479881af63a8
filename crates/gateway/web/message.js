// What stands in the place of the rows when there are none: loading, nothing found, or a refusal.

import { fill, h, setText } from './dom.js';
import { count } from './format.js';

/** @import { Refusal } from './api.js' */

/** What a status of the server means to the person in front of the page. @type {Map<number, string>} */
const MEANINGS = new Map([
  [400, 'The server cannot read the question'],
  [403, 'You may not see this'],
  [404, 'There is no such kind in this cluster'],
  [429, 'Too many streams'],
  [503, 'The cluster does not answer'],
  [504, 'The cluster does not answer in time'],
  [507, 'The gateway has no memory left for another kind'],
]);

export class Message {
  constructor() {
    this.element = h('div', { class: 'message', role: 'status', hidden: true });
    this.shown = '';
  }

  hide() {
    this.shown = '';
    this.element.hidden = true;
  }

  /** @param {string} kind @param {number} arrived @param {number} expected */
  loading(kind, arrived, expected) {
    if (this.#change('loading')) {
      fill(this.element, h('p', { class: 'message-title' }), h('progress', { 'aria-label': 'Loading' }));
    }
    const title = this.element.querySelector('.message-title');
    if (title) setText(title, expected ? `${count(arrived)} of ${count(expected)} ${kind} …` : `Reading ${kind} from the cluster …`);
    const bar = this.element.querySelector('progress');
    if (!bar) return;
    if (expected) {
      bar.max = expected;
      bar.value = arrived;
    } else {
      bar.removeAttribute('value');
    }
  }

  /** @param {string} kind @param {boolean} filtered @param {() => void} clear */
  empty(kind, filtered, clear) {
    if (!this.#change(`empty ${kind} ${filtered}`)) return;
    fill(this.element,
      h('p', { class: 'message-title' }, filtered ? `No ${kind} match` : `There are no ${kind}`),
      h('p', {}, filtered ? 'New ones that match are shown as they come.' : 'They are shown as they come.'),
      filtered && h('button', { type: 'button', class: 'primary', onclick: clear }, 'Clear the filters'));
  }

  /** @param {Refusal} refusal @param {{ retry: () => void, clear: (() => void) | null }} actions */
  refused(refusal, { retry, clear }) {
    this.#change(`refused ${refusal.status} ${refusal.message}`);
    fill(this.element,
      h('p', { class: 'message-title is-bad' }, MEANINGS.get(refusal.status) ?? 'The server said no'),
      h('p', { class: 'message-said' }, refusal.message),
      h('div', { class: 'message-actions' },
        h('button', { type: 'button', class: 'primary', onclick: retry }, 'Try again'),
        clear && h('button', { type: 'button', onclick: clear }, 'Clear the filters')));
  }

  /** @param {string} text @param {() => void} retry */
  failed(text, retry) {
    this.#change(`failed ${text}`);
    fill(this.element, h('p', { class: 'message-title is-bad' }, 'The gateway does not answer'), h('p', { class: 'message-said' }, text),
      h('button', { type: 'button', class: 'primary', onclick: retry }, 'Try again'));
  }

  /** @param {string} what @returns {boolean} whether something else was shown before */
  #change(what) {
    this.element.hidden = false;
    const other = what !== this.shown;
    this.shown = what;
    return other;
  }
}
