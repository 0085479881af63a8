// The header: what is looked at, how it is filtered, and whether it is live.

import { fill, h, icon, setText } from './dom.js';
import { count, counted } from './format.js';
import { Filters } from './filters.js';
import { Summary } from './summary.js';
import { nextTheme, setTheme, theme } from './theme.js';
import { formatRoute } from './state.js';

/** @import { Resource } from './api.js' */
/** @import { Progress } from './stream.js' */
/** @import { Route, SortKey } from './state.js' */
/** @import { Column } from './columns.js' */

/**
 * @typedef {object} Actions
 * @property {() => void} kinds
 * @property {() => void} namespaces
 * @property {() => void} pause
 * @property {() => void} help
 * @property {() => void} reconnect
 * @property {(patch: Partial<Route>, replace: boolean) => void} change
 */

export class Header {
  /** @param {Actions} actions */
  constructor(actions) {
    this.actions = actions;
    this.filters = new Filters(actions.change);
    this.summary = new Summary((q) => actions.change({ q }, true));
    this.kind = h('span', { class: 'kind-name' });
    this.kindPath = h('span', { class: 'kind-path' });
    this.kindButton = h('button', { type: 'button', class: 'kind-button', 'aria-haspopup': 'dialog', title: 'Choose a kind ( / )', onclick: actions.kinds },
      this.kind, this.kindPath, icon('down'));
    this.namespaceText = h('span', { class: 'namespace-text' });
    this.namespaceButton = h('button', { type: 'button', id: 'namespace', class: 'select-button', 'aria-haspopup': 'dialog', onclick: actions.namespaces },
      this.namespaceText, icon('down'));
    this.count = h('span', { class: 'count' });
    this.state = h('button', { type: 'button', class: 'state', onclick: actions.reconnect });
    this.announcement = h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
    this.wide = toggle('columns', 'Wide', 'All columns, as kubectl -o wide ( w )', () => actions.change({ wide: this.wide.getAttribute('aria-pressed') !== 'true' }, true));
    this.pause = toggle('pause', 'Pause', 'Hold changes back ( p )', actions.pause);
    this.theme = h('button', { type: 'button', class: 'tool', onclick: () => this.turnTheme() });
    this.health = h('a', { class: 'tool', href: '#/health', title: 'The informers ( h )' }, icon('pulse'), h('span', { class: 'tool-text' }, 'Health'));
    this.sort = h('select', { id: 'sort', onchange: () => this.#sorted() });
    this.sheetButton = h('button', {
      type: 'button', class: 'tool sheet-button', 'aria-expanded': 'false', 'aria-controls': 'filters', 'aria-label': 'Filters',
      onclick: () => this.showSheet(this.element.dataset.sheet !== 'open'),
    }, icon('filter'));
    this.bar = h('div', { class: 'bar-filters', id: 'filters', role: 'search', 'aria-label': 'Filters' },
      h('div', { class: 'field field-namespace' }, h('label', { for: 'namespace' }, 'Namespace'), this.namespaceButton),
      this.filters.labels.element, this.filters.fields.element, this.filters.text.element,
      h('div', { class: 'field field-sort' }, h('label', { for: 'sort' }, 'Sort'), this.sort),
      h('button', { type: 'button', class: 'sheet-close', onclick: () => this.showSheet(false) }, 'Show the rows'));
    this.home = h('a', { class: 'brand', href: '#/core/v1/pods', 'aria-label': 'informer, to the pods' },
      h('img', { src: '_page/icon.svg', alt: '', width: 24, height: 24 }), h('span', {}, 'informer'));
    this.element = h('header', { class: 'header' },
      h('div', { class: 'bar' }, this.home, this.kindButton, this.count, this.summary.element, h('span', { class: 'space' }),
        this.state, this.sheetButton,
        h('div', { class: 'tools', role: 'toolbar', 'aria-label': 'View' }, this.wide, this.pause, this.theme, this.health,
          h('button', { type: 'button', class: 'tool', 'aria-label': 'Keys', title: 'Keys ( ? )', onclick: actions.help }, icon('help')))),
      this.bar, this.announcement);
    setTheme(theme());
    this.#drawTheme();
  }

  /** @param {Route} route @param {Resource | undefined} resource */
  show(route, resource) {
    const health = route.path === 'health';
    this.element.dataset.view = health ? 'health' : 'grid';
    setText(this.kind, health ? 'Informers' : resource?.kind ?? route.path);
    setText(this.kindPath, health || !resource ? '' : `${resource.group || 'core'}/${resource.version}`);
    const { namespaces } = route;
    setText(this.namespaceText, !resource || resource.namespaced ? namespaces.length > 2 ? counted(namespaces.length, 'namespace') : namespaces.join(', ') || 'all' : 'cluster-wide');
    this.namespaceButton.disabled = Boolean(resource && !resource.namespaced);
    this.namespaceButton.title = namespaces.join(', ');
    this.wide.setAttribute('aria-pressed', String(route.wide));
    if (health) this.health.setAttribute('aria-current', 'page');
    else this.health.removeAttribute('aria-current');
    this.home.href = formatRoute({ path: 'core/v1/pods', namespaces });
    this.filters.show(route);
    const filters = [route.labels, route.fields, route.q, route.namespaces.length].filter(Boolean).length;
    this.sheetButton.dataset.count = filters ? String(filters) : '';
    document.title = health ? 'Health · informer' : `${resource?.kind ?? route.path}${namespaces.length ? ` · ${namespaces.join(', ')}` : ''} · informer`;
  }

  /** @param {Column[]} columns @param {SortKey[]} sort */
  showSort(columns, sort) {
    const current = sort[0] ? `${sort[0].descending ? '-' : ''}${sort[0].column}` : '';
    fill(this.sort, h('option', { value: '' }, 'Namespace, name'), ...columns.flatMap((column) => [
      h('option', { value: column.name, selected: current === column.name }, `${column.name} ↑`),
      h('option', { value: `-${column.name}`, selected: current === `-${column.name}` }, `${column.name} ↓`),
    ]));
  }

  #sorted() {
    const { value } = this.sort;
    this.actions.change({ sort: value ? [{ column: value.replace(/^-/, ''), descending: value.startsWith('-') }] : [] }, true);
  }

  /** @param {{ shown: number, total: number } | null} counts none while they are not known */
  showCount(counts) {
    setText(this.count, counts ? `${count(counts.shown)} of ${count(counts.total)}` : '');
  }

  /** @param {Progress} progress @param {{ paused: boolean, waiting: number }} pause */
  showState(progress, { paused, waiting }) {
    const { text, tone, long } = describe(progress, paused, waiting);
    this.state.dataset.tone = tone;
    this.state.dataset.phase = paused ? 'paused' : progress.phase;
    if (this.state.textContent !== text) fill(this.state, h('span', { class: 'state-dot', 'aria-hidden': 'true' }), h('span', { class: 'state-text' }, text));
    this.state.title = long;
    this.state.setAttribute('aria-label', long);
    // Seconds and counts are left out: a screen reader should hear of states, not of every tick.
    setText(this.announcement, text.replace(/\d[\d,]*/g, '').replace(/\s+/g, ' '));
    this.pause.setAttribute('aria-pressed', String(paused));
    if (this.pause.dataset.icon !== String(paused)) {
      this.pause.dataset.icon = String(paused);
      fill(this.pause, icon(paused ? 'play' : 'pause'), h('span', { class: 'tool-text' }, paused ? 'Resume' : 'Pause'));
    }
  }

  /** @param {boolean} open */
  showSheet(open) {
    this.element.dataset.sheet = open ? 'open' : 'closed';
    this.sheetButton.setAttribute('aria-expanded', String(open));
  }

  turnTheme() {
    setTheme(nextTheme(theme()));
    this.#drawTheme();
  }

  #drawTheme() {
    const chosen = theme();
    const label = `Theme: ${chosen}`;
    this.theme.title = `${label} ( t )`;
    this.theme.setAttribute('aria-label', label);
    fill(this.theme, icon(chosen === 'auto' ? 'auto' : chosen === 'dark' ? 'moon' : 'sun'));
  }
}

/** @param {Parameters<typeof icon>[0]} name @param {string} text @param {string} title @param {() => void} pressed */
function toggle(name, text, title, pressed) {
  return h('button', { type: 'button', class: 'tool', 'aria-pressed': 'false', title, onclick: pressed }, icon(name), h('span', { class: 'tool-text' }, text));
}

/**
 * @param {Progress} progress
 * @param {boolean} paused
 * @param {number} waiting
 */
function describe(progress, paused, waiting) {
  if (paused) {
    const text = waiting ? `paused · ${counted(waiting, 'change')} waiting` : 'paused';
    return { text, tone: 'wait', long: `${text}; press to go on` };
  }
  switch (progress.phase) {
    case 'live':
      return { text: 'live', tone: 'good', long: 'Live: changes are shown as they happen' };
    case 'waiting': {
      const seconds = Math.max(0, Math.ceil(((progress.until ?? 0) - Date.now()) / 1000));
      const again = seconds ? `reconnecting in ${seconds} s` : 'reconnecting';
      // That one may not see this, or perhaps not, is no matter of the connection: it is said at once.
      const text = /^access (revoked|cannot be checked)$/.test(progress.reason ?? '') ? `${progress.reason} · ${again}` : again;
      return { text, tone: 'wait', long: `Reconnecting: ${progress.reason}. Press to try now` };
    }
    case 'refused':
      return { text: 'refused', tone: 'bad', long: `Refused: ${progress.reason}. Press to try again` };
    case 'asleep':
      return { text: 'asleep', tone: 'wait', long: 'Asleep while nobody looked' };
    case 'loading':
      return { text: 'loading', tone: 'wait', long: 'The first rows are on their way' };
    default:
      return { text: 'connecting', tone: 'wait', long: 'Connecting to the gateway' };
  }
}
