// Light, dark, or as the system says. The choice outlives the visit.

/** @typedef {'auto' | 'light' | 'dark'} Theme */

const KEY = 'informer.theme';
/** @type {Theme[]} */
const ORDER = ['auto', 'light', 'dark'];

/** What was chosen last. @returns {Theme} */
export function theme() {
  const stored = read();
  return ORDER.find((name) => name === stored) ?? 'auto';
}

/** Puts the theme on the page and remembers it. @param {Theme} chosen */
export function setTheme(chosen) {
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A browser without storage: the choice holds until the page is closed.
  }
}

/** The theme after this one. @param {Theme} current @returns {Theme} */
export function nextTheme(current) {
  return ORDER[(ORDER.indexOf(current) + 1) % ORDER.length] ?? 'auto';
}

function read() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
