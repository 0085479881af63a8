// The owner tree of an object: up through its owner references, down through what the gateway knows to be owned.

import { fill, h } from './dom.js';
import { count } from './format.js';
import { Refusal, getJson, objectAddress } from './api.js';

/** @import { Catalog, ClusterObject, OwnerReference, Resource } from './api.js' */

/** @typedef {{ depth: number, owner: string, path: string, kind: string, namespace?: string, name: string, uid: string }} Owned */
/** @typedef {{ kind: string, name: string, namespace?: string, path: string | null, note?: string, self?: boolean, children: TreeNode[] }} TreeNode */

const HIGHEST = 8;
/** Of what one object owns, so many are shown. */
const MOST = 200;

/**
 * What is worth starting an informer for to find what a kind owns. The gateway searches all that run already.
 * @type {Map<string, string[]>}
 */
const OWNED_BY = new Map(Object.entries({
  'apps/deployments': ['replicasets.apps', 'pods'],
  'apps/replicasets': ['pods'],
  'apps/statefulsets': ['pods', 'controllerrevisions.apps'],
  'apps/daemonsets': ['pods', 'controllerrevisions.apps'],
  'core/replicationcontrollers': ['pods'],
  'batch/cronjobs': ['jobs.batch', 'pods'],
  'batch/jobs': ['pods'],
  'core/services': ['endpointslices.discovery.k8s.io'],
  'core/pods': [],
}));
const OWNED_BY_OTHERS = ['deployments.apps', 'statefulsets.apps', 'daemonsets.apps', 'replicasets.apps', 'jobs.batch', 'pods', 'services', 'configmaps'];

/**
 * @param {ClusterObject} object
 * @param {Resource} resource
 * @param {Catalog} catalog
 * @param {AbortSignal} signal
 */
export async function ownerTree(object, resource, catalog, signal) {
  const meta = object.metadata ?? {};
  const [owned, owners] = await Promise.all([down(meta.uid ?? '', resource, catalog, signal), up(object, catalog, signal)]);
  /** @type {TreeNode} */
  const self = { kind: object.kind ?? resource.kind, name: meta.name ?? '', path: null, self: true, children: nest(meta.uid ?? '', owned.items) };
  return { roots: attach(owners, self), searched: owned.searched, error: owned.error };
}

/** @param {string} uid @param {Resource} resource @param {Catalog} catalog @param {AbortSignal} signal */
async function down(uid, resource, catalog, signal) {
  const wanted = OWNED_BY.get(`${resource.group || 'core'}/${resource.resource}`) ?? OWNED_BY_OTHERS;
  const served = wanted.filter((name) => catalog.resources.some((other) => (other.group ? `${other.resource}.${other.group}` : other.resource) === name));
  const address = `_owned/${encodeURIComponent(uid)}`;
  let error = '';
  // Not everybody may see all of them, and there may be no memory for more: what runs already is searched then.
  for (const query of served.length ? [`?resources=${encodeURIComponent(served.join(','))}`, ''] : ['']) {
    try {
      const answer = await getJson(address + query, { signal });
      return { items: /** @type {Owned[]} */ (answer.items ?? []), searched: /** @type {string[]} */ (answer.searched ?? []), error };
    } catch (refused) {
      if (!(refused instanceof Refusal)) throw refused;
      error = refused.message;
    }
  }
  return { items: [], searched: [], error };
}

/** @param {string} root @param {Owned[]} items each once, owners before what they own @returns {TreeNode[]} */
function nest(root, items) {
  /** @type {Map<string, TreeNode[]>} */
  const children = new Map([[root, []]]);
  for (const { owner, uid, kind, name, namespace, path } of items) {
    /** @type {TreeNode} */
    const node = { kind, name, ...(namespace ? { namespace } : {}), path, children: [] };
    children.get(owner)?.push(node);
    if (!children.has(uid)) children.set(uid, node.children);
  }
  return children.get(root) ?? [];
}

/** @typedef {{ node: TreeNode, above: Ancestor[] }} Ancestor */

/** @param {ClusterObject} object @param {Catalog} catalog @param {AbortSignal} signal @param {number} height @returns {Promise<Ancestor[]>} */
async function up(object, catalog, signal, height = 0) {
  const references = height < HIGHEST ? object.metadata?.ownerReferences ?? [] : [];
  return Promise.all(references.map((reference) => ancestor(reference, object.metadata?.namespace, catalog, signal, height)));
}

/**
 * @param {OwnerReference} reference @param {string | undefined} namespace @param {Catalog} catalog @param {AbortSignal} signal @param {number} height
 * @returns {Promise<Ancestor>}
 */
async function ancestor(reference, namespace, catalog, signal, height) {
  const resource = catalog.ofKind(reference.apiVersion, reference.kind);
  const scope = resource?.namespaced ? namespace : undefined;
  /** @type {TreeNode} */
  const node = { kind: reference.kind, name: reference.name, ...(scope ? { namespace: scope } : {}), path: resource?.path ?? null, children: [] };
  if (!resource) return { node: { ...node, note: 'a kind that is not served' }, above: [] };
  try {
    const owner = await getJson(objectAddress(resource, scope, reference.name), { signal });
    if (owner?.metadata?.uid !== reference.uid) return { node: { ...node, note: 'is gone; another has its name' }, above: [] };
    return { node, above: await up(owner, catalog, signal, height + 1) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { node: { ...node, note: error.status === 404 ? 'is gone' : error.message }, above: [] };
  }
}

/** The roots of the tree, with `below` as the child of each of its owners. @param {Ancestor[]} owners @param {TreeNode} below @returns {TreeNode[]} */
function attach(owners, below) {
  if (owners.length === 0) return [below];
  return owners.flatMap(({ node, above }) => attach(above, { ...node, children: [below] }));
}

/**
 * @param {HTMLElement} host
 * @param {Awaited<ReturnType<typeof ownerTree>>} tree
 * @param {(path: string, namespace: string | undefined, name: string) => string} address
 */
export function drawTree(host, { roots, searched, error }, address) {
  /** @param {TreeNode} node @returns {HTMLElement} */
  const item = (node) => {
    const label = [h('span', { class: 'tree-kind' }, node.kind), h('span', { class: 'tree-name' }, node.name)];
    const line = node.path ? h('a', { class: 'tree-line', href: address(node.path, node.namespace, node.name) }, ...label)
      : h('span', { class: 'tree-line', 'aria-current': node.self ? 'true' : null }, ...label, node.self && h('span', { class: 'tag' }, 'this'));
    return h('li', {}, line, node.note && h('span', { class: 'tree-note' }, node.note),
      node.children.length > 0 && h('ul', {}, ...node.children.slice(0, MOST).map(item),
        node.children.length > MOST && h('li', { class: 'tree-more' }, `and ${count(node.children.length - MOST)} more`)));
  };
  const alone = roots.length === 1 && roots[0]?.self && roots[0].children.length === 0;
  fill(host,
    h('ul', { class: 'tree', 'aria-label': 'Owners and what is owned' }, ...roots.map(item)),
    alone && h('p', { class: 'note' }, 'Nothing owns this object, and it owns nothing that was searched.'),
    error && h('p', { class: 'note is-bad' }, `Not all could be searched: ${error}`),
    searched.length > 0 && h('p', { class: 'note' }, `Searched for what it owns: ${searched.join(', ')}.`));
}
