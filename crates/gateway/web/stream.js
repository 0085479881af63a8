// A live stream: on a connection of its own, or over one that all tabs share.
// In: an address. Out: the snapshot in pieces, then changes, without a gap over lost connections (Last-Event-ID).

import { Refusal, request } from './api.js';
import { connect, placeAfter } from './connection.js';
import { isShared, subscribe } from './subscription.js';

/** @import { StreamEvent } from './connection.js' */

/** @typedef {{ name: string, type: string, format?: string, description?: string, priority?: number }} ColumnDefinition */
/**
 * @typedef {object} Progress
 * @property {'connecting' | 'loading' | 'live' | 'waiting' | 'refused' | 'asleep'} phase
 * @property {number} [until] when the next attempt is, for `waiting`
 * @property {string} [reason] why there is no connection
 */
/**
 * @typedef {object} Listener
 * @property {(progress: Progress) => void} progress
 * @property {(head: { total: number, columns: ColumnDefinition[] }) => void} begin a snapshot begins
 * @property {(items: any[]) => void} items a piece of it
 * @property {() => void} synced it is complete
 * @property {(type: 'added' | 'modified' | 'deleted', data: any) => void} change
 * @property {(refusal: Refusal) => void} refused the server said no; unless that is temporary nothing more comes before `retry`, and then from the beginning
 */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
/** Heartbeats come every ten seconds; three missed are a dead connection. */
const SILENCE = 35_000;
/** Before anything is sent, the gateway may have to read all objects of a kind: it gives up after a minute. */
const BEGINNING = 90_000;
/** A tab that nobody looks at costs the gateway nothing after so long. */
const HIDDEN = 30_000;

export class Stream {
  /** @param {string} address @param {Listener} listener */
  constructor(address, listener) {
    this.address = address;
    this.listener = listener;
    this.lastId = '';
    this.attempts = 0;
    this.stopped = false;
    /** @type {AbortController | null} */
    this.connection = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.sleep = undefined;
    this.onVisibility = () => this.#visibilityChanged();
    this.onOnline = () => this.timer !== undefined && this.retry();
    document.addEventListener('visibilitychange', this.onVisibility);
    addEventListener('online', this.onOnline);
    void this.#connect();
  }

  /** Ends it for good. */
  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    clearTimeout(this.sleep);
    document.removeEventListener('visibilitychange', this.onVisibility);
    removeEventListener('online', this.onOnline);
    this.connection?.abort();
  }

  /** Connects now instead of later. */
  retry() {
    if (this.stopped) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.connection?.abort();
    void this.#connect();
  }

  #visibilityChanged() {
    clearTimeout(this.sleep);
    if (!document.hidden) {
      if (!this.connection) this.retry();
      return;
    }
    this.sleep = setTimeout(() => {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.connection?.abort();
      this.connection = null;
      this.listener.progress({ phase: 'asleep' });
    }, HIDDEN);
  }

  async #connect() {
    const connection = new AbortController();
    this.connection = connection;
    this.listener.progress({ phase: 'connecting' });
    let delay = 0;
    let reason = 'the connection was lost';
    try {
      const events = await request(isShared() ? subscribe : connect, this.address, { signal: connection.signal, lastId: this.lastId });
      if (this.lastId) this.#live();
      const end = await this.#read(events, connection);
      if (end) {
        reason = end.reason;
        delay = end.retryAfterMs;
      }
    } catch (error) {
      if (connection !== this.connection) return;
      if (error instanceof Refusal) {
        reason = error.message;
        delay = error.retryAfter * 1000;
        if (!error.temporary) {
          this.connection = null;
          this.lastId = '';
          this.listener.progress({ phase: 'refused', reason });
        }
        this.listener.refused(error);
        if (!this.connection) return;
      } else if (error instanceof TypeError) {
        reason = 'the gateway does not answer';
      }
    }
    if (this.stopped || connection !== this.connection) return;
    this.connection = null;
    this.#later(reason, delay);
  }

  /** @param {string} reason @param {number} named the delay that the server asked for */
  #later(reason, named) {
    const grown = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    const delay = Math.max(named, grown);
    this.attempts += 1;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.#connect();
    }, delay);
    this.listener.progress({ phase: 'waiting', until: Date.now() + delay, reason });
  }

  #live() {
    this.attempts = 0;
    this.listener.progress({ phase: 'live' });
  }

  /** @param {ReadableStream<StreamEvent[]>} events @param {AbortController} connection */
  async #read(events, connection) {
    const reader = events.getReader();
    let watchdog = setTimeout(() => connection.abort(), BEGINNING);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || connection !== this.connection) return null;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => connection.abort(), SILENCE);
        for (const event of value) {
          const end = event.data === null ? null : this.#handle(event.event, JSON.parse(event.data));
          this.lastId = placeAfter(event, this.lastId);
          if (end) return end;
        }
      }
    } finally {
      clearTimeout(watchdog);
      // What the server still sends after `end`, or after an error here, is not wanted.
      reader.cancel().catch(() => {});
    }
  }

  /** @param {string} event @param {any} data @returns {{ reason: string, retryAfterMs: number } | null} */
  #handle(event, data) {
    switch (event) {
      case 'reset':
      case 'snapshot':
        this.listener.progress({ phase: 'loading' });
        this.listener.begin({ total: data.total ?? 0, columns: data.columns ?? [] });
        break;
      case 'items':
        this.listener.items(data.items ?? []);
        break;
      case 'synced':
        this.listener.synced();
        this.#live();
        break;
      case 'added':
      case 'modified':
      case 'deleted':
        this.listener.change(event, data);
        break;
      case 'refused':
        throw new Refusal(Number(data.code), String(data.message), Number(data.details?.retryAfterSeconds) || 0);
      case 'end':
        return { reason: String(data.reason ?? 'the server ended the stream'), retryAfterMs: Number(data.retryAfterMs) || 0 };
    }
    return null;
  }
}
