// The page: brings the address, the stream of rows, the grid, the drawer and the header together.

import { h } from './dom.js';
import { Catalog, Refusal, getJson, onUnauthorized } from './api.js';
import { Router } from './state.js';
import { Stream } from './stream.js';
import { RowStore } from './rows.js';
import { Grid } from './grid.js';
import { Header } from './header.js';
import { Palette } from './palette.js';
import { openKinds, openNamespaces, remember } from './picker.js';
import { Drawer } from './drawer.js';
import { Health } from './health.js';
import { Message } from './message.js';
import { TokenDialog } from './token.js';
import { helpDialog, listen } from './keys.js';

/** @import { Resource } from './api.js' */
/** @import { Route } from './state.js' */
/** @import { Progress } from './stream.js' */

class Page {
  constructor() {
    this.catalog = new Catalog();
    this.store = new RowStore();
    this.router = new Router((route, before) => this.#routed(route, before));
    /** @type {Resource | null} */
    this.resource = null;
    /** @type {Stream | null} */
    this.stream = null;
    /** @type {Progress} */
    this.progress = { phase: 'connecting' };
    /** @type {Refusal | null} */
    this.refusal = null;
    /** @type {string[]} */
    this.namespaces = [];
    this.frame = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.fading = undefined;

    this.header = new Header({
      kinds: () => this.#openKinds(),
      namespaces: () => this.#openNamespaces(),
      pause: () => this.#togglePause(),
      help: () => this.help.showModal(),
      reconnect: () => (this.store.paused ? this.#togglePause() : this.progress.phase !== 'live' && this.stream?.retry()),
      change: (patch, replace) => this.#change(patch, replace),
    });
    this.grid = new Grid(this.store, {
      open: (row) => this.#open(row.namespace, row.name),
      sort: (sort) => this.router.go({ sort }, { replace: true }),
    });
    this.drawer = new Drawer(this.catalog, {
      close: () => this.#closeDrawer(),
      tab: (tab) => this.router.go({ tab }, { replace: true }),
      label: (key, value) => this.router.go({ labels: value ? `${key}=${value}` : key, fields: '', q: '' }),
      route: () => this.router.route,
    });
    this.health = new Health();
    this.message = new Message();
    this.palette = new Palette();
    this.token = new TokenDialog();
    this.help = helpDialog();
    this.main = h('main', { class: 'main', 'aria-label': 'Objects' }, this.grid.element, this.message.element);
    document.body.append(this.header.element, h('div', { class: 'content' }, this.main, this.health.element, this.drawer.element),
      this.palette.dialog, this.token.dialog, this.help);
    onUnauthorized(() => this.token.ask());
    this.#listen();
    setInterval(() => this.#tick(), 1000);
  }

  async start() {
    this.message.loading('kinds', 0, 0);
    try {
      await this.catalog.load();
    } catch (error) {
      const retry = () => void this.start();
      if (error instanceof Refusal) this.message.refused(error, { retry, clear: null });
      else this.message.failed(error instanceof Error ? error.message : String(error), retry);
      return;
    }
    void this.#loadNamespaces();
    if (!this.router.route.path) this.router.go({ path: 'core/v1/pods' }, { replace: true });
    else this.router.start();
    this.grid.element.focus({ preventScroll: true });
  }

  #listen() {
    listen({
      move: (by) => { this.grid.element.focus({ preventScroll: true }); this.grid.move(by); },
      page: () => this.grid.page,
      open: () => {
        const row = this.grid.active;
        if (!row) return;
        this.#open(row.namespace, row.name);
        this.drawer.focus();
      },
      close: () => (this.drawer.open ? this.#closeDrawer() : this.header.showSheet(false)),
      kinds: () => this.#openKinds(),
      namespaces: () => this.#openNamespaces(),
      filter: () => { this.header.showSheet(true); this.header.filters.text.input.select(); },
      pause: () => this.#togglePause(),
      wide: () => this.router.go({ wide: !this.router.route.wide }, { replace: true }),
      theme: () => this.header.turnTheme(),
      health: () => this.router.go({ path: 'health', object: '' }),
    }, this.help);
    // Back from a tab that was hidden: frames did not run there, so what came meanwhile is shown now.
    document.addEventListener('visibilitychange', () => this.#schedule());
  }

  /** @param {Route} route @param {Route | null} before */
  #routed(route, before) {
    this.resource = this.catalog.find(route.path) ?? null;
    this.header.show(route, this.resource ?? undefined);
    const health = route.path === 'health';
    this.health.show(health);
    this.main.hidden = health;
    if (!before || this.#query(route) !== this.#query(before)) this.#follow(route);
    else if (route.q !== before.q) this.#filter(route.q);
    if (JSON.stringify(route.sort) !== JSON.stringify(this.store.sort) || route.wide !== this.store.wide) this.#arrange(route);
    this.drawer.show(health ? null : this.resource, route.object, route.tab);
    this.#markOpen();
  }

  /** Another question: another stream, and rows from the beginning. @param {Route} route */
  #follow(route) {
    this.stream?.stop();
    this.stream = null;
    this.refusal = null;
    this.header.filters.clearErrors();
    this.store.paused = false;
    this.store.sort = route.sort;
    this.store.wide = route.wide;
    // The one namespace that was chosen need not stand in every row.
    this.store.clear({ namespaced: this.resource?.namespaced === true && route.namespaces.length !== 1 });
    this.store.setText(route.q);
    this.grid.element.scrollTop = 0;
    this.grid.activeKey = '';
    this.grid.layout();
    if (route.path === 'health') return;
    if (this.resource) remember(this.resource.path);
    const stream = new Stream(`_stream/${this.#query(route)}`, {
      progress: (progress) => { this.progress = progress; this.#schedule(); },
      begin: ({ total, columns }) => { this.store.beginSnapshot(total, columns); this.#schedule(); },
      items: (items) => { this.store.addItems(items); this.#schedule(); },
      synced: () => this.#synced(),
      change: (type, { row }) => { this.store.change(type, row); this.#schedule(); },
      refused: (refusal) => this.#refused(refusal),
    });
    this.stream = stream;
    this.#schedule();
  }

  /** What the server is asked for a route. @param {Route} route */
  #query(route) {
    const parameters = new URLSearchParams({ as: 'table', interval: '100ms' });
    // The choice of namespaces stays when a kind of the cluster is looked at in between.
    const namespaced = this.catalog.find(route.path)?.namespaced ?? true;
    if (namespaced) for (const namespace of route.namespaces) parameters.append('namespace', namespace);
    if (route.labels) parameters.set('labelSelector', route.labels);
    if (route.fields) parameters.set('fieldSelector', route.fields);
    return `${route.path}?${parameters}`;
  }

  #synced() {
    const first = !this.store.complete;
    this.refusal = null;
    this.store.commitSnapshot();
    if (first) {
      // Only what is shown has a size, and can be scrolled to the row that a link names.
      this.grid.element.hidden = false;
      this.grid.layout();
      this.header.showSort(this.store.columns, this.store.sort);
    }
    this.#markOpen();
    this.#schedule();
  }

  /** @param {Refusal} refusal */
  #refused(refusal) {
    this.refusal = refusal;
    // What may no longer be seen, or is no longer there, does not stay on the page.
    if (refusal.status === 403 || refusal.status === 404) this.store.clear({ namespaced: this.store.namespaced });
    if (refusal.status === 400) this.header.filters.showRefusal(refusal.message);
    this.#schedule();
  }

  /** @param {string} text */
  #filter(text) {
    this.store.setText(text);
    this.grid.element.scrollTop = 0;
    this.grid.render();
    this.#schedule();
  }

  /** @param {Route} route */
  #arrange(route) {
    this.store.wide = route.wide;
    this.store.setSort(route.sort);
    this.grid.layout();
    this.header.showSort(this.store.columns, this.store.sort);
  }

  /** Changes come faster than they can be seen: all of them are drawn once per frame. */
  #schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const now = Date.now();
    this.grid.keepingPlace(() => this.store.flush(now));
    const { view, complete, arriving, expected } = this.store;
    this.header.showCount(complete ? this.store.counts : null);
    this.header.summary.show(this.store, this.router.route.q, now);
    this.#drawState();
    const kind = this.resource?.resource ?? this.router.route.path;
    const { route } = this.router;
    const clear = () => this.#change({ labels: '', fields: '', q: '', namespaces: [] }, false);
    const filtered = Boolean(route.labels || route.fields || route.q || route.namespaces.length);
    this.grid.element.classList.toggle('is-stale', complete && this.progress.phase === 'waiting');
    if (this.refusal && !complete) this.message.refused(this.refusal, { retry: () => this.stream?.retry(), clear: filtered ? clear : null });
    else if (!complete) this.message.loading(kind, arriving?.size ?? 0, expected);
    else if (view.length === 0) this.message.empty(kind, filtered, clear);
    else this.message.hide();
    this.grid.element.hidden = !complete;
    // Marks have to be taken away again, also when nothing else comes.
    if (this.store.marked.size > 0) {
      this.fading ??= setTimeout(() => {
        this.fading = undefined;
        this.#schedule();
      }, 120);
    }
  }

  #drawState() {
    this.header.showState(this.progress, { paused: this.store.paused, waiting: this.store.pending.size });
  }

  #tick() {
    this.grid.tick();
    this.drawer.tick();
    this.header.summary.show(this.store, this.router.route.q, Date.now());
    this.#drawState();
  }

  #togglePause() {
    this.store.paused = !this.store.paused;
    this.#schedule();
  }

  /** A filter was set. The same one again, after a refusal, asks again. @param {Partial<Route>} patch @param {boolean} replace */
  #change(patch, replace) {
    const before = this.router.route;
    this.router.go(patch, { replace });
    if (this.router.route === before && this.refusal) this.stream?.retry();
  }

  /** @param {string} namespace @param {string} name */
  #open(namespace, name) {
    const object = namespace ? `${namespace}/${name}` : name;
    if (object === this.router.route.object) this.drawer.focus();
    else this.router.go({ object }, { replace: this.drawer.open });
  }

  #closeDrawer() {
    this.router.go({ object: '', tab: 'overview' });
    this.grid.element.focus({ preventScroll: true });
  }

  /** The row of the object in the drawer is marked in the grid. */
  #markOpen() {
    const { object } = this.router.route;
    const slash = object.indexOf('/');
    const namespace = slash < 0 ? '' : object.slice(0, slash);
    const name = object.slice(slash + 1);
    const row = object ? this.store.view.find((candidate) => candidate.name === name && candidate.namespace === namespace) : undefined;
    this.grid.openKey = row?.key ?? '';
    if (row && !this.grid.activeKey) {
      this.grid.activeKey = row.key;
      this.grid.reveal(row);
    }
    this.grid.render();
  }

  #openKinds() {
    openKinds(this.palette, this.catalog, (path) => {
      const { namespaces, wide } = this.router.route;
      this.router.go({ path, namespaces, wide, labels: '', fields: '', q: '', sort: [], object: '', tab: 'overview' });
      this.grid.element.focus({ preventScroll: true });
    });
    // States of informers change: the list is asked for again, for the next time it is opened.
    this.catalog.load().catch(() => {});
  }

  #openNamespaces() {
    if (this.resource && !this.resource.namespaced) return;
    openNamespaces(this.palette, {
      names: () => {
        const names = new Set(this.namespaces);
        for (const row of this.store.rows.values()) if (row.namespace) names.add(row.namespace);
        return [...names].sort();
      },
      counts: () => {
        const counts = new Map();
        for (const row of this.store.rows.values()) counts.set(row.namespace, (counts.get(row.namespace) ?? 0) + 1);
        return counts;
      },
      chosen: () => this.router.route.namespaces,
      choose: (namespaces) => this.router.go({ namespaces }),
    });
    void this.#loadNamespaces();
  }

  async #loadNamespaces() {
    try {
      const { msg } = await getJson('core/v1/namespaces?fields=metadata.name');
      this.namespaces = msg.flatMap((/** @type {any} */ namespace) => namespace?.metadata?.name ?? []);
    } catch {
      // Not everybody may list namespaces: those of the rows are offered then.
    }
  }
}

void new Page().start();
