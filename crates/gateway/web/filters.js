// The filters: labels and fields, which the server applies, and free text, which is applied here.
// What the server cannot read is shown at the field that it is about, with the place.

import { fill, h, icon } from './dom.js';

/** @import { Route } from './state.js' */

/**
 * Which parameter a refusal is about, and where in it the error is.
 * @param {string} message
 * @returns {{ about: 'labels' | 'fields' | null, byte: number }}
 */
export function locate(message) {
  const about = /label ?selector/i.test(message) ? 'labels' : /field ?selector|field path/i.test(message) ? 'fields' : null;
  const place = /\bbyte (\d+)/.exec(message);
  return { about, byte: place ? Number(place[1]) : -1 };
}

/** The index in a string of a place in its UTF-8 bytes. @param {string} text @param {number} byte */
export function indexOfByte(text, byte) {
  const bytes = new TextEncoder().encode(text).slice(0, byte);
  return new TextDecoder().decode(bytes).length;
}

/** A text field with a label, and a place under it for what is wrong. */
class Field {
  /**
   * @param {{ id: string, label: string, placeholder: string, hint?: string, apply: (value: string) => void, instant?: boolean }} options
   */
  constructor({ id, label, placeholder, hint = '', apply, instant = false }) {
    this.apply = apply;
    this.error = h('div', { class: 'field-error', id: `${id}-error`, role: 'alert', hidden: true });
    this.input = h('input', {
      type: 'text', id, placeholder, title: hint, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off',
      onchange: () => this.apply(this.input.value.trim()),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter') this.apply(this.input.value.trim());
      },
      oninput: () => {
        this.showError('', -1);
        this.element.dataset.filled = String(this.input.value !== '');
        if (instant) this.apply(this.input.value.trim());
      },
    });
    this.clear = h('button', {
      type: 'button', class: 'field-clear', 'aria-label': `Clear: ${label}`, tabindex: -1,
      onclick: () => { this.set(''); this.apply(''); this.input.focus(); },
    }, icon('close'));
    this.element = h('div', { class: `field field-${id}` }, h('label', { for: id }, label), this.input, this.clear, this.error);
  }

  /** @param {string} value */
  set(value) {
    if (document.activeElement !== this.input || this.input.value.trim() !== value) this.input.value = value;
    this.element.dataset.filled = String(value !== '');
  }

  /** @param {string} message empty = nothing is wrong @param {number} byte where */
  showError(message, byte) {
    this.error.hidden = message === '';
    if (message) this.input.setAttribute('aria-invalid', 'true');
    else this.input.removeAttribute('aria-invalid');
    if (message) this.input.setAttribute('aria-describedby', this.error.id);
    else this.input.removeAttribute('aria-describedby');
    const text = this.input.value.trim();
    const at = byte < 0 ? -1 : Math.min(indexOfByte(text, byte), text.length);
    const marked = at >= 0 && h('code', { class: 'field-place' },
      text.slice(Math.max(0, at - 40), at), h('mark', {}, text.slice(at, at + 1) || '␣'), text.slice(at + 1, at + 40));
    // The beginning repeats the text that stands right above it.
    fill(this.error, marked, h('span', {}, message.replace(/^.*(?:cannot be read|selector "(?:[^"\\]|\\.)*"):\s*/, '')));
  }
}

export class Filters {
  /** @param {(patch: Partial<Route>, replace: boolean) => void} changed */
  constructor(changed) {
    this.labels = new Field({
      id: 'labels', label: 'Labels', placeholder: 'app=web, tier in (a, b), !canary',
      hint: 'A label selector, as kubectl -l takes it', apply: (labels) => changed({ labels }, false),
    });
    this.fields = new Field({
      id: 'fields', label: 'Fields', placeholder: 'status.phase!=Running, spec.nodeName exists',
      hint: 'Any path: a.b=x, a.b!=x, a.b in (x, y), a.b notin (x, y), a.b exists, !a.b', apply: (fields) => changed({ fields }, false),
    });
    this.text = new Field({
      id: 'text', label: 'Text', placeholder: 'in what is shown', hint: 'Words that all have to be in the row',
      apply: (q) => changed({ q }, true), instant: true,
    });
  }

  /** @param {Route} route */
  show(route) {
    this.labels.set(route.labels);
    this.fields.set(route.fields);
    this.text.set(route.q);
  }

  clearErrors() {
    this.labels.showError('', -1);
    this.fields.showError('', -1);
  }

  /** Shows a refusal at the field it is about. @param {string} message @returns {boolean} whether there is such a field */
  showRefusal(message) {
    const { about, byte } = locate(message);
    if (!about) return false;
    this[about].showError(message, byte);
    return true;
  }
}
