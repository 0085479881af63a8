// The connections of all tabs, in a worker that they share: over HTTP/1.1 a browser has six for a server, however many tabs it
// has, and a stream needs one for as long as it lasts. In: subscriptions of tabs. Out, to each: its events as text, or why there
// are no more; the tab asks again then.

import { Refusal } from './api.js';
import { connect, placeAfter } from './connection.js';

/** @import { StreamEvent } from './connection.js' */
/** @typedef {{ status: number, message: string, retryAfter: number }} Failure a refusal; status 0 = the connection was lost */

/** Two of six stay free for ordinary requests. */
export const MOST_CONNECTIONS = 4;
/** What the gateway takes on one. */
export const MOST_STREAMS = 32;
/** Proxies refuse longer addresses. */
const LONGEST = 6_000;
/** A tab that has answered nothing for so long is gone; heartbeats come every ten seconds. */
const PATIENCE = 30_000;

const LOST = { status: 0, message: 'the connection was lost', retryAfter: 0 };
const FULL = { status: 429, message: 'This browser has as many connections to the gateway as it may have: close a tab.', retryAfter: 5 };

/** A stream that a tab wants. It is loading as long as it has no place to go on from. */
export class Subscription {
  /** @param {{ address: string, token: string | null, lastId: string }} wanted @param {(message: { events: StreamEvent[] } | Failure) => void} post */
  constructor({ address, token, lastId }, post) {
    this.address = address;
    this.token = token;
    this.lastId = lastId;
    this.post = post;
    /** Since when the tab has not answered, 0 = it has. */
    this.unheard = 0;
  }

  /** @param {StreamEvent[]} events */
  tell(events) {
    for (const event of events) this.lastId = placeAfter(event, this.lastId);
    this.unheard ||= Date.now();
    this.post({ events });
  }

  /** The parameter that asks for it. */
  get of() {
    const place = this.lastId && `${this.address.includes('?') ? '&' : '?'}lastEventId=${encodeURIComponent(this.lastId)}`;
    return `of=${encodeURIComponent(this.address + place)}`;
  }
}

/** Streams that share a connection, by their number on it. */
export class Connection {
  /** @param {Subscription[]} subscriptions */
  constructor(subscriptions) {
    this.members = new Map(subscriptions.entries());
    this.token = subscriptions[0]?.token ?? null;
    this.address = `_streams?${subscriptions.map(({ of }) => of).join('&')}`;
    this.abort = new AbortController();
    /** Whose events are heard now. */
    this.number = 0;
  }

  get loading() {
    return [...this.members.values()].filter(({ lastId }) => !lastId).length;
  }
}

/**
 * Which two connections become one when there are too many: those of one token whose interruption costs least. What is
 * loading begins anew; all others go on from their places.
 * @param {Connection[]} connections
 */
export function toJoin(connections) {
  /** @type {Connection[] | null} */
  let pair = null;
  let least = Infinity;
  for (const [at, one] of connections.entries()) {
    for (const other of connections.slice(at + 1)) {
      const streams = one.members.size + other.members.size;
      const cost = (one.loading + other.loading) * MOST_STREAMS + streams;
      const fits = one.token === other.token && streams <= MOST_STREAMS && one.address.length + other.address.length <= LONGEST;
      if (!fits || cost >= least) continue;
      pair = [one, other];
      least = cost;
    }
  }
  return pair;
}

export class Hub {
  constructor(open = connect) {
    this.open = open;
    /** @type {Set<Connection>} */
    this.connections = new Set();
  }

  /** A newcomer gets a connection of its own if that can be: what it loads and what the others hear do not wait for each other. @param {Subscription} subscription */
  add(subscription) {
    const own = new Connection([subscription]);
    const joined = this.connections.size < MOST_CONNECTIONS ? [own] : toJoin([own, ...this.connections]);
    if (!joined) return subscription.post(FULL);
    this.#goOn(joined);
    if (!joined.includes(own)) this.#goOn([own]);
  }

  /** The gateway stops to send for it when the others go on without it. @param {Subscription} subscription */
  remove(subscription) {
    const connection = [...this.connections].find(({ members }) => [...members.values()].includes(subscription));
    if (connection) this.#goOn([connection], subscription);
  }

  /** Goes on over one connection with what these carry. @param {Connection[]} connections @param {Subscription} [without] */
  #goOn(connections, without) {
    const subscriptions = connections.flatMap(({ members }) => [...members.values()]).filter((member) => member !== without);
    for (const connection of connections) {
      this.connections.delete(connection);
      connection.abort.abort();
    }
    if (subscriptions.length) void this.#run(new Connection(subscriptions));
  }

  /** @param {Connection} connection */
  async #run(connection) {
    const { members, abort, abort: { signal } } = connection;
    this.connections.add(connection);
    let failure = LOST;
    try {
      const reader = (await this.open(connection.address, connection.token, { signal })).getReader();
      for (const member of members.values()) member.tell([]);
      for (let read = await reader.read(); !read.done && !signal.aborted; read = await reader.read()) this.#deliver(connection, read.value);
    } catch (error) {
      if (error instanceof Refusal) failure = { status: error.status, message: error.message, retryAfter: error.retryAfter };
    }
    // What it carried goes on over another one.
    if (signal.aborted) return;
    this.connections.delete(connection);
    abort.abort();
    for (const member of members.values()) member.post(failure);
  }

  /** @param {Connection} connection @param {StreamEvent[]} events */
  #deliver(connection, events) {
    /** @type {Map<Subscription, StreamEvent[]>} */
    const heard = new Map();
    for (const event of events) {
      if (event.event === 'of') connection.number = JSON.parse(event.data ?? '').stream;
      const member = connection.members.get(connection.number);
      if (!member || event.event === 'of') continue;
      const told = heard.get(member) ?? [];
      told.push(event);
      heard.set(member, told);
      if (event.event === 'end' || event.event === 'refused') connection.members.delete(connection.number);
    }
    for (const [member, told] of heard) member.tell(told);
    for (const member of heard.keys()) {
      if (!member.unheard || Date.now() - member.unheard < PATIENCE) continue;
      member.post(LOST);
      this.remove(member);
    }
  }
}

const hub = new Hub();

/** @type {any} */ (globalThis).onconnect = (/** @type {{ ports: MessagePort[] }} */ { ports: [port] }) => {
  /** @type {Subscription} */
  let subscription;
  port?.addEventListener('message', ({ data }) => {
    if (data.wanted) hub.add(subscription = new Subscription(data.wanted, (message) => port.postMessage(message)));
    else if (data.heard) subscription.unheard = 0;
    else hub.remove(subscription);
  });
  port?.start();
};
