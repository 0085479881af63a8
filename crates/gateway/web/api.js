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
/** Where the gateway is: the files of the page stand in `_page/` there. A worker has no document that would tell. */
const ROOT = new URL('..', import.meta.url);

/** What the server said no with. */
export class Refusal extends Error {
  /** @param {number} status @param {string} message @param {number} retryAfter seconds, 0 when the server named none */
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether asking again may help: what is shown stays until then. */
  get temporary() {
    return [429, 502, 503, 504].includes(this.status);
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

/** A response of the gateway with a good status; any other is thrown. @param {string} address @param {string | null} token @param {{ signal?: AbortSignal, headers?: Record<string, string> }} options */
export async function ask(address, token, { signal, headers = {} }) {
  const authorization = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(new URL(address, ROOT), {
    headers: { ...headers, ...authorization },
    signal: signal ?? null,
    cache: 'no-store',
  });
  if (!response.ok) throw await readRefusal(response);
  return response;
}

/**
 * Sends a request with the token of this tab; asks for another token and sends it again on 401.
 * @template T
 * @template {{ signal?: AbortSignal }} O
 * @param {(address: string, token: string | null, options: O) => Promise<T>} send
 * @param {string} address
 * @param {O} options
 */
export async function request(send, address, options) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    try {
      return await send(address, token, options);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401 || !askForToken) throw error;
    }
    // Another request may have got a new token meanwhile: then that one is tried first.
    if (sessionStorage.getItem(TOKEN) === token) await askForToken();
    options.signal?.throwIfAborted();
  }
}

/** @param {string} address @param {{ signal?: AbortSignal }} [options] @returns {Promise<any>} */
export async function getJson(address, options = {}) {
  return (await request(ask, address, options)).json();
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
