// Choosing what to look at: any kind that can be listed and watched, and namespaces.

import { count } from './format.js';

/** @import { Catalog, Resource } from './api.js' */
/** @import { Choice, Palette } from './palette.js' */

const RECENT = 'informer.recent';
const MOST_RECENT = 5;
/** A namespace is called like a label of DNS. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** @param {string} path */
export function remember(path) {
  const paths = [path, ...recent().filter((other) => other !== path)].slice(0, MOST_RECENT);
  try {
    localStorage.setItem(RECENT, JSON.stringify(paths));
  } catch {
    // A browser without storage has no recent kinds.
  }
}

/** @returns {string[]} */
function recent() {
  try {
    const stored = JSON.parse(localStorage.getItem(RECENT) ?? '[]');
    return Array.isArray(stored) ? stored.filter((path) => typeof path === 'string') : [];
  } catch {
    return [];
  }
}

/**
 * How well a kind answers to a text: 0 is best, Infinity not at all. All words have to fit.
 * @param {Resource} resource
 * @param {string} text
 */
export function fit(resource, text) {
  const names = [resource.resource, resource.singular, resource.kind, ...resource.shortNames].map((name) => name.toLowerCase());
  let worst = 0;
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    let best = Infinity;
    if (names.includes(word)) best = 0;
    else if (names.some((name) => name.startsWith(word))) best = 1;
    else if (names.some((name) => name.includes(word))) best = 2;
    else if (`${resource.path}.${resource.group}`.toLowerCase().includes(word)) best = 3;
    else if (resource.categories.some((category) => category.toLowerCase() === word)) best = 4;
    worst = Math.max(worst, best);
  }
  return worst;
}

/** @param {Palette} palette @param {Catalog} catalog @param {(path: string) => void} choose */
export function openKinds(palette, catalog, choose) {
  /** @param {Resource} resource @param {string} section @returns {Choice} */
  const choice = (resource, section) => ({
    key: resource.path,
    title: resource.kind,
    section,
    detail: `${resource.resource} · ${resource.group || 'core'}/${resource.version}`,
    tags: resource.shortNames,
    state: resource.state,
  });
  const silent = catalog.silent.length ? ` · did not answer: ${catalog.silent.join(', ')}` : '';
  palette.open({
    label: 'Kinds of objects',
    placeholder: 'Name, short name or API group: pods, deploy, cert-manager.io …',
    foot: `${count(catalog.resources.length)} kinds${silent}`,
    choose,
    search: (text) => {
      if (text) {
        return catalog.resources
          .map((resource) => ({ resource, rank: fit(resource, text) }))
          .filter(({ rank }) => rank < Infinity)
          .sort((a, b) => a.rank - b.rank || a.resource.resource.length - b.resource.resource.length)
          .map(({ resource }) => choice(resource, 'Found'));
      }
      const used = recent().flatMap((path) => catalog.find(path) ?? []);
      const rest = catalog.resources.filter((resource) => !used.includes(resource)).sort(byGroup);
      return [
        ...used.map((resource) => choice(resource, 'Recently used')),
        ...rest.map((resource) => choice(resource, resource.group || 'core')),
      ];
    },
  });
}

/** The core group first, then by name. @param {Resource} a @param {Resource} b */
function byGroup(a, b) {
  return a.group < b.group ? -1 : a.group > b.group ? 1 : a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0;
}

/**
 * @param {Palette} palette
 * @param {{ names: () => string[], counts: () => Map<string, number>, chosen: () => string[], choose: (names: string[]) => void }} namespaces
 */
export function openNamespaces(palette, namespaces) {
  palette.open({
    label: 'Namespaces',
    placeholder: 'Namespace …',
    foot: 'Enter chooses one · Shift+Enter or a click on the box takes several',
    choose: (key) => namespaces.choose(key ? [key] : []),
    toggle: (key) => {
      const chosen = namespaces.chosen();
      if (!key) namespaces.choose([]);
      else namespaces.choose(chosen.includes(key) ? chosen.filter((name) => name !== key) : [...chosen, key]);
    },
    search: (text) => {
      const chosen = namespaces.chosen();
      const counts = namespaces.counts();
      const typed = text.toLowerCase();
      const known = [...new Set([...namespaces.names(), ...chosen])].sort();
      const names = known.filter((name) => name.includes(typed));
      const all = { key: '', title: 'All namespaces', section: '', checked: chosen.length === 0 };
      return [
        ...(text ? [] : [all]),
        ...names.map((name) => ({
          key: name, title: name, section: 'Namespaces', checked: chosen.includes(name),
          detail: counts.has(name) ? count(counts.get(name) ?? 0) : '',
        })),
        // Whoever may not list namespaces types the name of one.
        ...(NAMESPACE.test(typed) && !known.includes(typed) ? [{ key: typed, title: `Use “${typed}”`, section: 'Typed' }] : []),
      ];
    },
  });
}
