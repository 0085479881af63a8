// Asks for a bearer token when the gateway wants one. It is kept for this tab only and sent to this gateway only.

import { h } from './dom.js';
import { setToken } from './api.js';

export class TokenDialog {
  constructor() {
    this.input = h('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
    this.refused = h('p', { class: 'note is-bad', role: 'alert', hidden: true }, 'The gateway did not take that token.');
    this.dialog = h('dialog', { class: 'sheet', 'aria-labelledby': 'token-title', oncancel: (/** @type {Event} */ event) => event.preventDefault() },
      h('form', { method: 'dialog', onsubmit: () => this.#given() },
        h('h2', { id: 'token-title' }, 'Who are you?'),
        h('p', {}, 'This gateway shows to everybody what they may see in the cluster. It takes a bearer token of the cluster, for example from ',
          h('code', {}, 'kubectl create token <service account>'), '.'),
        h('label', { for: 'token' }, 'Bearer token'), this.input, this.refused,
        h('p', { class: 'note' }, 'It is forgotten when this tab is closed.'),
        h('div', { class: 'sheet-actions' }, h('button', { type: 'submit', class: 'primary' }, 'Go on'))));
    this.times = 0;
    /** @type {Promise<void> | null} */
    this.asking = null;
    /** @type {() => void} */
    this.answered = () => {};
  }

  /** One dialog for all requests that wait for it. */
  ask() {
    this.asking ??= new Promise((resolve) => {
      this.answered = resolve;
      this.input.value = '';
      this.refused.hidden = this.times === 0;
      this.times += 1;
      this.dialog.showModal();
    });
    return this.asking;
  }

  #given() {
    setToken(this.input.value.trim());
    this.asking = null;
    this.answered();
  }
}
