// The drawer: one object in full, kept up to date by a stream of its own while it is open.

import { fill, h, icon, setText } from './dom.js';
import { Stream } from './stream.js';
import { TABS, formatRoute } from './state.js';
import { overview } from './overview.js';
import { drawYaml, toYaml, yamlText } from './yaml.js';
import { drawTree, ownerTree } from './owners.js';
import { ObjectEvents, escapeValue } from './events.js';

/** @import { Catalog, ClusterObject, Resource } from './api.js' */
/** @import { Route, Tab } from './state.js' */

const TITLES = { overview: 'Overview', yaml: 'YAML', owners: 'Owners', events: 'Events' };

/**
 * @typedef {object} Actions
 * @property {() => void} close
 * @property {(tab: Tab) => void} tab
 * @property {(key: string, value: string) => void} label
 * @property {() => Route} route
 */

export class Drawer {
  /** @param {Catalog} catalog @param {Actions} actions */
  constructor(catalog, actions) {
    this.catalog = catalog;
    this.actions = actions;
    /** @type {Resource | null} */
    this.resource = null;
    this.id = '';
    /** @type {Tab} */
    this.tab = 'overview';
    /** @type {ClusterObject | null} */
    this.object = null;
    /** @type {Stream | null} */
    this.stream = null;
    /** @type {ObjectEvents | null} */
    this.events = null;
    /** @type {AbortController | null} */
    this.asking = null;
    /** What the panel shows now, so that only a newer state is drawn again. */
    this.drawn = '';
    /** @type {Set<string> | null} */
    this.lines = null;

    this.kind = h('span', { class: 'drawer-kind' });
    this.title = h('h2', { id: 'drawer-title', class: 'drawer-title' });
    this.notice = h('p', { class: 'drawer-notice', role: 'status', hidden: true });
    this.tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the object', onkeydown: (/** @type {KeyboardEvent} */ event) => this.#tabKey(event) },
      ...TABS.map((tab) => h('button', { type: 'button', role: 'tab', id: `tab-${tab}`, 'data-tab': tab, 'aria-controls': 'drawer-panel', onclick: () => actions.tab(tab) }, TITLES[tab])));
    this.copy = h('button', { type: 'button', class: 'tool copy', onclick: () => void this.#copy() }, icon('copy'), h('span', { class: 'copy-text' }, 'Copy'));
    this.panel = h('div', { class: 'drawer-panel', id: 'drawer-panel', role: 'tabpanel', tabindex: 0 });
    this.element = h('aside', { class: 'drawer', role: 'dialog', 'aria-modal': 'false', 'aria-labelledby': 'drawer-title', hidden: true },
      h('div', { class: 'drawer-head' },
        h('div', { class: 'drawer-names' }, this.kind, this.title),
        h('button', { type: 'button', class: 'tool', 'aria-label': 'Close', title: 'Close ( Esc )', onclick: actions.close }, icon('close'))),
      h('div', { class: 'drawer-tabs' }, this.tabs, this.copy), this.notice, this.panel);
  }

  get open() {
    return !this.element.hidden;
  }

  /** Shows an object, or with an empty `id` none. @param {Resource | null} resource @param {string} id `namespace/name` or `name` @param {Tab} tab */
  show(resource, id, tab) {
    if (!resource || !id) {
      this.#stop();
      this.element.hidden = true;
      this.resource = null;
      this.id = '';
      return;
    }
    const other = resource.path !== this.resource?.path || id !== this.id;
    this.tab = tab;
    this.element.hidden = false;
    for (const button of this.tabs.querySelectorAll('button')) {
      const selected = button.dataset.tab === tab;
      button.setAttribute('aria-selected', String(selected));
      button.tabIndex = selected ? 0 : -1;
    }
    this.panel.setAttribute('aria-labelledby', `tab-${tab}`);
    this.copy.hidden = tab !== 'yaml';
    if (other) this.#follow(resource, id);
    else this.#draw();
  }

  /** @param {Resource} resource @param {string} id */
  #follow(resource, id) {
    this.#stop();
    this.resource = resource;
    this.id = id;
    const slash = id.indexOf('/');
    const namespace = slash < 0 ? '' : id.slice(0, slash);
    const name = id.slice(slash + 1);
    setText(this.kind, namespace ? `${resource.kind} in ${namespace}` : resource.kind);
    setText(this.title, name);
    this.#note('');
    fill(this.panel, h('p', { class: 'note' }, 'Loading …'));
    const query = new URLSearchParams({ fieldSelector: `metadata.name=${escapeValue(name)}` });
    if (namespace) query.set('namespace', namespace);
    let found = false;
    /** @param {ClusterObject} object */
    const put = (object) => {
      found = true;
      this.#note('');
      this.object = { apiVersion: resource.group ? `${resource.group}/${resource.version}` : resource.version, kind: resource.kind, ...object };
      this.#draw();
    };
    this.stream = new Stream(`_stream/${resource.path}?${query}`, {
      progress: () => {},
      begin: () => { found = false; },
      items: (items) => items.forEach(put),
      synced: () => {
        if (found) return;
        if (this.object) this.#note('This object was deleted. This is the last that was seen of it.');
        else fill(this.panel, h('p', { class: 'note' }, `There is no ${resource.kind} of that name${namespace ? ' in this namespace' : ''}. It is shown here if it comes.`));
      },
      change: (type, { object }) => {
        if (type === 'deleted') this.#note('This object was deleted. This is the last that was seen of it.');
        else put(object);
      },
      refused: (refusal) => {
        if (this.object && refusal.temporary) return;
        this.#leaveTab();
        this.object = null;
        fill(this.panel, h('p', { class: 'note is-bad' }, refusal.message));
      },
    });
  }

  #stop() {
    this.stream?.stop();
    this.stream = null;
    this.object = null;
    this.#leaveTab();
  }

  #leaveTab() {
    this.events?.stop();
    this.events = null;
    this.asking?.abort();
    this.asking = null;
    this.lines = null;
    this.drawn = '';
  }

  /** @param {string} text */
  #note(text) {
    this.notice.hidden = text === '';
    setText(this.notice, text);
  }

  #draw() {
    const { object, resource, tab } = this;
    if (!object || !resource) return;
    const uid = object.metadata?.uid ?? '';
    // The tree and the events hang on the object's identity, the other tabs on its version.
    const identity = `${tab} ${uid}`;
    if (!this.drawn.startsWith(identity)) {
      this.#leaveTab();
      this.panel.scrollTop = 0;
    }
    const state = tab === 'owners' || tab === 'events' ? identity : `${identity} ${object.metadata?.resourceVersion}`;
    if (this.drawn === state) return;
    this.drawn = state;
    if (tab === 'overview') this.#drawOverview(object);
    else if (tab === 'yaml') this.#drawYaml(object);
    else if (tab === 'owners') void this.#drawOwners(object, resource);
    else this.events = new ObjectEvents(this.panel, object);
  }

  /** @param {ClusterObject} object */
  #drawOverview(object) {
    fill(this.panel, overview(object, {
      label: this.actions.label,
      owner: (reference, namespace) => {
        const resource = this.catalog.ofKind(reference.apiVersion, reference.kind);
        return resource ? this.#address(resource.path, resource.namespaced ? namespace : undefined, reference.name) : null;
      },
    }));
  }

  /** @param {ClusterObject} object */
  #drawYaml(object) {
    const known = this.panel.firstElementChild;
    const host = known instanceof HTMLElement && known.matches('.yaml') ? known : h('div', { class: 'yaml', translate: 'no' });
    if (host !== known) fill(this.panel, host);
    this.lines = drawYaml(host, toYaml(object), this.lines);
  }

  /** @param {ClusterObject} object @param {Resource} resource */
  async #drawOwners(object, resource) {
    const asking = new AbortController();
    this.asking = asking;
    fill(this.panel, h('p', { class: 'note' }, 'Following the owners …'));
    try {
      const tree = await ownerTree(object, resource, this.catalog, asking.signal);
      if (!asking.signal.aborted) drawTree(this.panel, tree, (path, namespace, name) => this.#address(path, namespace, name));
    } catch (error) {
      if (!asking.signal.aborted) fill(this.panel, h('p', { class: 'note is-bad' }, `The owners cannot be followed: ${error instanceof Error ? error.message : error}`));
    }
  }

  /** The address that opens another object. @param {string} path @param {string | undefined} namespace @param {string} name */
  #address(path, namespace, name) {
    const route = this.actions.route();
    const namespaces = namespace && !route.namespaces.includes(namespace) ? [] : route.namespaces;
    return formatRoute({ path, namespaces, wide: route.wide, object: namespace ? `${namespace}/${name}` : name, tab: this.tab });
  }

  async #copy() {
    const text = this.object ? yamlText(toYaml(this.object)) : '';
    const label = this.copy.querySelector('.copy-text');
    let said = 'Copied';
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      said = 'Not allowed';
    }
    if (label) setText(label, said);
    setTimeout(() => label && setText(label, 'Copy'), 1500);
  }

  /** @param {KeyboardEvent} event */
  #tabKey(event) {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    const next = TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length] ?? 'overview';
    this.actions.tab(next);
    this.focus();
    event.preventDefault();
  }

  /** Puts the focus on the tab that is open. */
  focus() {
    const selected = this.tabs.querySelector('[aria-selected="true"]');
    if (selected instanceof HTMLElement) selected.focus();
  }

  /** Lets ages grow. */
  tick() {
    this.events?.draw();
  }
}
