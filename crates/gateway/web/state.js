// What is shown lives in the address: `#/core/v1/pods?namespace=…&labelSelector=…&object=ns/name&tab=yaml`.
// So a link leads to the same view, and the browser's back and forward work.

/** @typedef {{ column: string, descending: boolean }} SortKey */
/** @typedef {'overview' | 'yaml' | 'owners' | 'events'} Tab */
/**
 * @typedef {object} Route
 * @property {string} path the resource, `core/v1/pods`; `health` for the view of the informers; empty for the default
 * @property {string[]} namespaces none = all
 * @property {string} labels
 * @property {string} fields
 * @property {string} q the free text
 * @property {SortKey[]} sort
 * @property {boolean} wide
 * @property {string} object `namespace/name`, or `name` of an object of the cluster; empty = no drawer
 * @property {Tab} tab
 */

/** @type {Tab[]} */
export const TABS = ['overview', 'yaml', 'owners', 'events'];

/** @type {Route} */
const START = { path: '', namespaces: [], labels: '', fields: '', q: '', sort: [], wide: false, object: '', tab: 'overview' };

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const text = hash.replace(/^#\/?/, '');
  const question = text.indexOf('?');
  const path = question < 0 ? text : text.slice(0, question);
  const query = new URLSearchParams(question < 0 ? '' : text.slice(question + 1));
  const tab = query.get('tab');
  return {
    path: decode(path).replace(/\/+$/, ''),
    namespaces: query.getAll('namespace').filter(Boolean),
    labels: query.get('labelSelector') ?? '',
    fields: query.get('fieldSelector') ?? '',
    q: query.get('q') ?? '',
    sort: parseSort(query.get('sort') ?? ''),
    wide: query.get('wide') === '1',
    object: query.get('object') ?? '',
    tab: TABS.find((name) => name === tab) ?? 'overview',
  };
}

/** The address of a view: what is as it is by default is left out. @param {Partial<Route>} partial */
export function formatRoute(partial) {
  const route = { ...START, ...partial };
  const query = new URLSearchParams();
  for (const namespace of route.namespaces) query.append('namespace', namespace);
  if (route.labels) query.set('labelSelector', route.labels);
  if (route.fields) query.set('fieldSelector', route.fields);
  if (route.q) query.set('q', route.q);
  if (route.sort.length) query.set('sort', route.sort.map((key) => (key.descending ? '-' : '') + key.column).join(','));
  if (route.wide) query.set('wide', '1');
  if (route.object) query.set('object', route.object);
  if (route.object && route.tab !== 'overview') query.set('tab', route.tab);
  const text = query.toString().replaceAll('%2F', '/').replaceAll('%3D', '=').replaceAll('%2C', ',');
  return `#/${route.path.split('/').map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** @param {string} text @returns {SortKey[]} */
function parseSort(text) {
  return text.split(',').filter((name) => name.replace('-', '')).map((name) => ({
    column: name.replace(/^-/, ''),
    descending: name.startsWith('-'),
  }));
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The route of now; tells its listener when it changes, whoever changed it. */
export class Router {
  /** @param {(route: Route, before: Route | null) => void} changed */
  constructor(changed) {
    this.route = parseRoute(location.hash);
    this.changed = changed;
    const follow = () => {
      if (formatRoute(parseRoute(location.hash)) !== formatRoute(this.route)) this.#set(parseRoute(location.hash));
    };
    addEventListener('popstate', follow);
    addEventListener('hashchange', follow);
  }

  /** Tells the listener of the first route. */
  start() {
    this.changed(this.route, null);
  }

  /**
   * Changes parts of the route. With `replace` the step is not one that "back" undoes: for typing and sorting.
   * @param {Partial<Route>} patch
   * @param {{ replace?: boolean }} [options]
   */
  go(patch, { replace = false } = {}) {
    const next = { ...this.route, ...patch };
    const address = formatRoute(next);
    if (address === formatRoute(this.route)) return;
    if (replace) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
    this.#set(next);
  }

  /** @param {Route} next */
  #set(next) {
    const before = this.route;
    this.route = next;
    this.changed(next, before);
  }
}
