// Asking the gateway. Addresses are relative to the page, so the gateway may stand behind a path of a proxy.

/**
 * @typedef {object} Resource
 * @property {string} group
 * @property {string} version
 * @property {string} resource
 * @property {string} kind
 * @property {string} singular
 * @property {string[]} shortNames
 * @property {string[]} categories
 * @property {boolean} namespaced
 * @property {string} path
 * @property {'synced' | 'syncing' | 'idle' | 'failed'} state
 */
/** @typedef {{ apiVersion: string, kind: string, name: string, uid: string, controller?: boolean }} OwnerReference */
/**
 * An object of the cluster: only the members that every kind has are named.
 * @typedef {{ apiVersion?: string, kind?: string, metadata?: Metadata, [member: string]: any }} ClusterObject
 */
/**
 * @typedef {object} Metadata
 * @property {string} [name]
 * @property {string} [namespace]
 * @property {string} [uid]
 * @property {string} [creationTimestamp]
 * @property {string} [deletionTimestamp]
 * @property {string} [resourceVersion]
 * @property {number} [generation]
 * @property {string[]} [finalizers]
 * @property {Record<string, string>} [labels]
 * @property {Record<string, string>} [annotations]
 * @property {OwnerReference[]} [ownerReferences]
 */

const TOKEN = 'informer.token';

/** What the server said no with. */
export class Refusal extends Error {
  /** @param {number} status @param {string} message @param {number} retryAfter seconds, 0 when the server named none */
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** @type {(() => Promise<void>) | null} */
let askForToken = null;

/** How a bearer token is asked for when the server wants one. @param {() => Promise<void>} ask */
export function onUnauthorized(ask) {
  askForToken = ask;
}

/** Keeps the token until the browser's tab is closed. @param {string} token */
export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/**
 * A response of the gateway with a good status; asks for a token and tries again on 401.
 * @param {string} address
 * @param {{ signal?: AbortSignal, headers?: Record<string, string> }} [options]
 */
export async function request(address, { signal, headers = {} } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const authorization = token ? { authorization: `Bearer ${token}` } : {};
    const response = await fetch(new URL(address, document.baseURI), {
      headers: { ...headers, ...authorization },
      signal: signal ?? null,
      cache: 'no-store',
    });
    if (response.ok) return response;
    const refusal = await readRefusal(response);
    if (response.status !== 401 || !askForToken) throw refusal;
    // Another request may have got a new token meanwhile: then that one is tried first.
    if (sessionStorage.getItem(TOKEN) === token) await askForToken();
    signal?.throwIfAborted();
  }
}

/** @param {string} address @param {{ signal?: AbortSignal }} [options] @returns {Promise<any>} */
export async function getJson(address, options) {
  return (await request(address, options)).json();
}

/** @param {Response} response */
async function readRefusal(response) {
  const text = await response.text().catch(() => '');
  let message = text.slice(0, 500);
  try {
    const body = JSON.parse(text);
    message = String(body.message ?? (typeof body.msg === 'string' ? body.msg : message));
  } catch {
    // Not JSON: a proxy in between said no. Its text is all there is.
  }
  const retryAfter = Number(response.headers.get('retry-after'));
  return new Refusal(response.status, message || response.statusText, retryAfter > 0 ? retryAfter : 0);
}

/** Every resource that can be listed and watched, and which one belongs to a kind. */
export class Catalog {
  constructor() {
    /** @type {Resource[]} */
    this.resources = [];
    /** @type {string[]} groups that did not answer */
    this.silent = [];
  }

  async load() {
    const answer = await getJson('_resources');
    this.resources = answer.resources ?? [];
    this.silent = answer.silent ?? [];
  }

  /** @param {string} path */
  find(path) {
    return this.resources.find((resource) => resource.path === path);
  }

  /** The resource of an owner reference; any version of the group if its own is not served. @param {string} apiVersion @param {string} kind */
  ofKind(apiVersion, kind) {
    const slash = apiVersion.indexOf('/');
    const group = slash < 0 ? '' : apiVersion.slice(0, slash);
    const version = apiVersion.slice(slash + 1);
    const same = this.resources.filter((resource) => resource.kind === kind && resource.group === group);
    return same.find((resource) => resource.version === version) ?? same[0];
  }
}

/** Where the Kubernetes API has an object. @param {Resource} resource @param {string | undefined} namespace @param {string} name */
export function objectAddress(resource, namespace, name) {
  const root = resource.group ? `apis/${resource.group}/${resource.version}` : `api/${resource.version}`;
  const scope = resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${resource.resource}/${encodeURIComponent(name)}`;
}
