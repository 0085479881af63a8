// A list to search and choose from, in a dialog: kinds and namespaces are chosen with it.

import { fill, h, icon } from './dom.js';
import { count } from './format.js';

/**
 * @typedef {object} Choice
 * @property {string} key
 * @property {string} title
 * @property {string} section the heading it stands under
 * @property {string} [detail] shown at the right
 * @property {string[]} [tags] other names
 * @property {string} [state] the state of its informer
 * @property {boolean} [checked]
 */
/**
 * @typedef {object} Question
 * @property {string} label
 * @property {string} placeholder
 * @property {(text: string) => Choice[]} search the choices for a text, best first
 * @property {(key: string) => void} choose
 * @property {(key: string) => void} [toggle] for lists where several can be chosen; the dialog stays open
 * @property {string} [foot]
 */

const MOST = 200;

export class Palette {
  constructor() {
    this.input = h('input', {
      type: 'text', role: 'combobox', 'aria-label': 'Search', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list',
      autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', class: 'palette-input',
      oninput: () => this.#draw(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.list = h('div', { role: 'listbox', id: 'palette-list', class: 'palette-list' });
    this.foot = h('p', { class: 'palette-foot' });
    this.dialog = h('dialog', {
      class: 'palette',
      onclick: (/** @type {MouseEvent} */ event) => event.target === this.dialog && this.dialog.close(),
    }, h('div', { class: 'palette-box' },
      h('div', { class: 'palette-search' }, icon('search'), this.input, h('kbd', {}, 'Esc')), this.list, this.foot));
    /** @type {Question | null} */
    this.question = null;
    /** @type {HTMLElement[]} */
    this.options = [];
    this.active = 0;
  }

  /** @param {Question} question */
  open(question) {
    this.question = question;
    this.dialog.setAttribute('aria-label', question.label);
    this.list.setAttribute('aria-label', question.label);
    this.list.setAttribute('aria-multiselectable', String(Boolean(question.toggle)));
    this.input.setAttribute('aria-label', question.label);
    this.input.placeholder = question.placeholder;
    this.input.value = '';
    if (!this.dialog.open) this.dialog.showModal();
    this.#draw();
    this.input.focus();
  }

  #draw() {
    if (!this.question) return;
    const choices = this.question.search(this.input.value.trim());
    const shown = choices.slice(0, MOST);
    this.options = [];
    /** @type {Node[]} */
    const nodes = [];
    let section = '';
    for (const choice of shown) {
      if (choice.section !== section) {
        section = choice.section;
        nodes.push(h('div', { class: 'palette-section', role: 'presentation' }, section));
      }
      const option = this.#option(choice);
      this.options.push(option);
      nodes.push(option);
    }
    if (shown.length === 0) nodes.push(h('p', { class: 'palette-none' }, `Nothing is called “${this.input.value}”.`));
    fill(this.list, ...nodes);
    const more = choices.length - shown.length;
    this.foot.textContent = more > 0 ? `${count(more)} more: type to narrow them down` : this.question.foot ?? '';
    this.#activate(0);
    this.list.scrollTop = 0;
  }

  /** @param {Choice} choice */
  #option(choice) {
    const toggle = this.question?.toggle;
    return h('div', {
      role: 'option', id: `option-${this.options.length}`, class: 'option', 'aria-selected': 'false', 'data-key': choice.key,
      'aria-checked': toggle ? String(Boolean(choice.checked)) : null,
      onclick: () => this.#choose(choice.key),
    },
      toggle && h('span', {
        class: 'option-box', 'aria-hidden': 'true',
        onclick: (/** @type {MouseEvent} */ event) => { event.stopPropagation(); this.#toggle(choice.key); },
      }, choice.checked && icon('check')),
      h('span', { class: 'option-title' }, choice.title),
      ...(choice.tags ?? []).map((tag) => h('span', { class: 'tag' }, tag)),
      h('span', { class: 'option-detail' }, choice.detail),
      choice.state && choice.state !== 'idle' && h('span', { class: 'option-state', 'data-state': choice.state }, choice.state));
  }

  /** @param {number} at */
  #activate(at) {
    this.options[this.active]?.setAttribute('aria-selected', 'false');
    this.active = Math.max(0, Math.min(this.options.length - 1, at));
    const option = this.options[this.active];
    option?.setAttribute('aria-selected', 'true');
    option?.scrollIntoView({ block: 'nearest' });
    if (option) this.input.setAttribute('aria-activedescendant', option.id);
    else this.input.removeAttribute('aria-activedescendant');
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const key = this.options[this.active]?.dataset.key;
    if (event.key === 'ArrowDown') this.#activate(this.active + 1);
    else if (event.key === 'ArrowUp') this.#activate(this.active - 1);
    else if (event.key === 'PageDown') this.#activate(this.active + 8);
    else if (event.key === 'PageUp') this.#activate(this.active - 8);
    else if (event.key === 'Enter' && key !== undefined && event.shiftKey && this.question?.toggle) this.#toggle(key);
    else if (event.key === 'Enter' && key !== undefined) this.#choose(key);
    else return;
    event.preventDefault();
  }

  /** @param {string} key */
  #choose(key) {
    this.dialog.close();
    this.question?.choose(key);
  }

  /** @param {string} key */
  #toggle(key) {
    const { active } = this;
    this.question?.toggle?.(key);
    this.#draw();
    this.#activate(active);
    this.input.focus();
  }
}
