// The keyboard: which key does what, and the dialog that tells.

import { h } from './dom.js';

/**
 * @typedef {object} Keyboard
 * @property {(by: number) => void} move
 * @property {() => number} page
 * @property {() => void} open
 * @property {() => void} close
 * @property {() => void} kinds
 * @property {() => void} namespaces
 * @property {() => void} filter
 * @property {() => void} pause
 * @property {() => void} wide
 * @property {() => void} theme
 * @property {() => void} health
 */

const KEYS = [
  ['j k, ↓ ↑', 'move by a row'],
  ['PageDown PageUp', 'move by a page'],
  ['Home End', 'first and last row'],
  ['Enter', 'open the object'],
  ['Esc', 'close what is open, leave a field'],
  ['/ or Ctrl K', 'choose a kind'],
  ['n', 'choose namespaces'],
  ['f', 'filter by text'],
  ['p', 'pause and go on'],
  ['w', 'all columns'],
  ['t', 'theme: auto, light, dark'],
  ['h', 'informers'],
  ['Shift + click', 'sort by one more column'],
  ['?', 'this list'],
];

/** The dialog that lists the keys. */
export function helpDialog() {
  const dialog = h('dialog', { class: 'sheet', 'aria-labelledby': 'help-title', onclick: (/** @type {MouseEvent} */ event) => event.target === dialog && dialog.close() },
    h('form', { method: 'dialog' }, h('h2', { id: 'help-title' }, 'Keys'),
      h('dl', { class: 'keys' }, ...KEYS.flatMap(([keys = '', meaning]) => [h('dt', {}, h('kbd', {}, keys)), h('dd', {}, meaning)])),
      h('div', { class: 'sheet-actions' }, h('button', { type: 'submit', class: 'primary' }, 'Close'))));
  return dialog;
}

/** @param {Keyboard} actions @param {HTMLDialogElement} help */
export function listen(actions, help) {
  addEventListener('keydown', (event) => {
    const control = event.ctrlKey || event.metaKey;
    if (control && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (!document.querySelector('dialog[open]')) actions.kinds();
      return;
    }
    // A dialog has its own keys, and a combination belongs to the browser.
    if (control || event.altKey || document.querySelector('dialog[open]')) return;
    // A dialog that was closed just now can still have the focus: that is nowhere.
    const focused = event.target instanceof HTMLElement && !event.target.closest('dialog:not([open])') ? event.target : null;
    if (focused?.matches('input, textarea, select')) {
      if (event.key === 'Escape') focused.blur();
      return;
    }
    const inGrid = !focused || focused === document.body || focused.matches('[role="grid"]');
    const action = anywhere(event.key, actions, help) ?? (inGrid ? onRows(event.key, actions) : null);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** @param {string} key @param {Keyboard} actions @param {HTMLDialogElement} help @returns {(() => void) | null} */
function anywhere(key, actions, help) {
  switch (key) {
    case 'Escape': return actions.close;
    case '/': return actions.kinds;
    case 'n': return actions.namespaces;
    case 'f': return actions.filter;
    case 'p': return actions.pause;
    case 'w': return actions.wide;
    case 't': return actions.theme;
    case 'h': return actions.health;
    case '?': return () => help.showModal();
    case 'j': return () => actions.move(1);
    case 'k': return () => actions.move(-1);
    default: return null;
  }
}

/** @param {string} key @param {Keyboard} actions @returns {(() => void) | null} */
function onRows(key, actions) {
  switch (key) {
    case 'ArrowDown': return () => actions.move(1);
    case 'ArrowUp': return () => actions.move(-1);
    case 'PageDown': return () => actions.move(actions.page());
    case 'PageUp': return () => actions.move(-actions.page());
    case 'Home': return () => actions.move(-Infinity);
    case 'End': return () => actions.move(Infinity);
    case 'Enter': return actions.open;
    default: return null;
  }
}
