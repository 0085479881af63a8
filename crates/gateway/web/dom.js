// Building elements. Text always goes in as text nodes: nothing here, or anywhere on the page, parses HTML.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

/**
 * An element. `on…` attributes are listeners; `true` is an empty attribute; `null`, `undefined` and `false` leave it out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, attributes);
  append(element, children);
  return element;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(element, attributes);
  append(element, children);
  return element;
}

/** @param {Element} element @param {Attributes} attributes */
function apply(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
}

/** @param {Element} element @param {Child[]} children */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Puts these children in the place of all that were there.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Sets the text only when it differs: an unchanged text node costs no layout. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The outlines of the icons, on a grid of 16 by 16. */
const OUTLINES = {
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2v9.6l7.5-4.8Z',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1',
  moon: 'M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1Z',
  auto: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12M8 4.5l3.9-.6M8 7.5h6M8 10.5l4.6 1',
  pulse: 'M1.5 8.5h3l2-5.5 3 10 2-4.5h3',
  help: 'M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4ZM6.2 6.3a1.9 1.9 0 1 1 2.7 1.8c-.6.3-.9.6-.9 1.2v.2M8 11.5v.1',
  close: 'm4 4 8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3',
  filter: 'M2 4h12M4.5 8h7M6.5 12h3',
  down: 'm4 6.5 4 4 4-4',
  columns: 'M2 3h12v10H2ZM6 3v10M10 3v10',
  check: 'm3 8.5 3.2 3.2L13 5',
};

/** @param {keyof typeof OUTLINES} name */
export function icon(name) {
  return svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true' }, svg('path', { d: OUTLINES[name] }));
}
