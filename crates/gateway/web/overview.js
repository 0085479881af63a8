// The first tab of the drawer: what every object has (metadata, labels, conditions), and the containers of pods.

import { h } from './dom.js';
import { age, moment } from './format.js';
import { toneOf } from './columns.js';

/** @import { ClusterObject, OwnerReference } from './api.js' */

/**
 * @typedef {object} Links
 * @property {(reference: OwnerReference, namespace: string | undefined) => string | null} owner the address of an owner
 * @property {(key: string, value: string) => void} label filters by a label
 */

/** @param {ClusterObject} object @param {Links} links @returns {HTMLElement} */
export function overview(object, links) {
  const meta = object.metadata ?? {};
  const now = Date.now();
  const created = Date.parse(meta.creationTimestamp ?? '');
  return h('div', { class: 'overview' },
    facts([
      ['Namespace', meta.namespace],
      ['Created', meta.creationTimestamp && `${moment(meta.creationTimestamp)} · ${age(created, now)} ago`],
      ['Deleted', meta.deletionTimestamp && `${moment(meta.deletionTimestamp)}, is going`],
      ['Owner', meta.ownerReferences && owners(meta.ownerReferences, meta.namespace, links)],
      ['UID', meta.uid && h('code', {}, meta.uid)],
      ['Version', meta.resourceVersion && h('code', {}, `${meta.resourceVersion}${meta.generation ? ` · generation ${meta.generation}` : ''}`)],
      ['Finalizers', meta.finalizers?.join(', ')],
    ]),
    containers(object),
    conditions(object),
    labels(meta.labels, links),
    annotations(meta.annotations));
}

/** @param {[string, Node | string | undefined | '' | 0][]} pairs */
function facts(pairs) {
  return h('dl', { class: 'facts' }, ...pairs.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : [])));
}

/** @param {OwnerReference[]} references @param {string | undefined} namespace @param {Links} links */
function owners(references, namespace, links) {
  return h('span', {}, ...references.flatMap((reference, at) => {
    const address = links.owner(reference, namespace);
    const name = `${reference.kind}/${reference.name}`;
    return [at > 0 && ', ', address ? h('a', { href: address }, name) : name];
  }));
}

/** @param {string} title @param {...import('./dom.js').Child} children */
function section(title, ...children) {
  return h('section', {}, h('h3', {}, title), ...children);
}

/** @param {Record<string, string> | undefined} labels @param {Links} links */
function labels(labels, links) {
  const entries = Object.entries(labels ?? {});
  if (entries.length === 0) return null;
  return section('Labels', h('div', { class: 'chips' }, ...entries.map(([key, value]) =>
    h('button', { type: 'button', class: 'chip', title: 'Show all with this label', onclick: () => links.label(key, value) },
      h('span', { class: 'chip-key' }, key), h('span', { class: 'chip-value' }, value)))));
}

/** @param {Record<string, string> | undefined} annotations */
function annotations(annotations) {
  const entries = Object.entries(annotations ?? {});
  if (entries.length === 0) return null;
  return section('Annotations', h('dl', { class: 'annotations' }, ...entries.flatMap(([key, value]) =>
    [h('dt', {}, key), h('dd', { tabindex: value.length > 400 ? 0 : null }, value)])));
}

/** @param {string[]} heads @param {import('./dom.js').Child[][]} rows */
function table(heads, rows) {
  return h('div', { class: 'table-box' }, h('table', {},
    h('thead', {}, h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, ...rows.map((cells) => h('tr', {}, ...cells.map((cell) => h('td', {}, cell)))))));
}

/** @param {string} text @param {string} tone */
function toned(text, tone) {
  return h('span', { class: 'toned', 'data-tone': tone }, h('span', { class: 'dot', 'aria-hidden': 'true' }), text);
}

/** Conditions that are good when they are not true. */
const NEGATIVE = /pressure|unavailable|failure|failed|dangling|terminating|stalled|degraded|disruptiontarget/i;

/** @param {ClusterObject} object */
function conditions(object) {
  const list = object.status?.conditions;
  if (!Array.isArray(list) || list.length === 0) return null;
  const now = Date.now();
  return section('Conditions', table(['Condition', 'Status', 'Since', 'Reason'], list.map((condition) => {
    const type = String(condition?.type ?? '');
    const status = String(condition?.status ?? '');
    const good = NEGATIVE.test(type) ? 'False' : 'True';
    const tone = status === good ? 'good' : status === 'Unknown' || NEGATIVE.test(type) ? 'bad' : 'wait';
    const reason = [condition?.reason, condition?.message].filter(Boolean).join(': ');
    return [type, toned(status, tone), age(Date.parse(condition?.lastTransitionTime ?? ''), now), reason];
  })));
}

/** @param {ClusterObject} object */
function containers(object) {
  const specs = object.spec?.containers;
  const statuses = [...(object.status?.initContainerStatuses ?? []), ...(object.status?.containerStatuses ?? [])];
  if (object.kind !== 'Pod' || !Array.isArray(specs)) return null;
  const all = [...(object.spec?.initContainers ?? []), ...specs];
  return section('Containers', table(['Container', 'State', 'Restarts', 'Image'], all.map((spec) => {
    const status = statuses.find((candidate) => candidate?.name === spec?.name);
    const state = status?.state ?? {};
    const text = state.running ? 'Running' : state.waiting?.reason ?? state.terminated?.reason ?? (Object.keys(state)[0] || 'Waiting');
    const tone = state.running && status?.ready === false ? 'wait' : toneOf(text);
    const shown = state.running && status?.ready === false ? 'Running, not ready' : text;
    return [String(spec?.name ?? ''), toned(shown, tone), String(status?.restartCount ?? 0), h('code', {}, String(spec?.image ?? ''))];
  })));
}
