// A live stream: server-sent events over `fetch`, which can carry a token where `EventSource` cannot.
// In: an address. Out: the snapshot in pieces, then changes, without a gap over lost connections (Last-Event-ID).

import { Refusal, request } from './api.js';

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
 * @property {(refusal: Refusal) => void} refused the server said no; nothing more comes unless `retry` is called
 */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
/** Heartbeats come every ten seconds; three missed are a dead connection. */
const SILENCE = 35_000;
/** A browser has six connections per server. A tab that nobody looks at gives its own back after so long. */
const HIDDEN = 30_000;

/** Splits the text of a stream into events; pieces may end anywhere. */
export class EventParser {
  constructor() {
    this.rest = '';
  }

  /**
   * @param {string} text
   * @returns {{ event: string, data: string, id: string | null }[]}
   */
  feed(text) {
    const events = [];
    let from = 0;
    const whole = this.rest + text;
    for (;;) {
      const end = whole.indexOf('\n\n', from);
      if (end < 0) break;
      const event = this.#read(whole.slice(from, end));
      if (event) events.push(event);
      from = end + 2;
    }
    this.rest = whole.slice(from);
    return events;
  }

  /** @param {string} block */
  #read(block) {
    let event = 'message';
    // An empty one means: forget where you were.
    let id = null;
    let data = null;
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
      if (field === 'event') event = value;
      else if (field === 'id') id = value;
      else if (field === 'data') data = data === null ? value : `${data}\n${value}`;
    }
    return data === null ? null : { event, data, id };
  }
}

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
      const headers = { accept: 'text/event-stream', ...(this.lastId ? { 'last-event-id': this.lastId } : {}) };
      const response = await request(this.address, { signal: connection.signal, headers });
      if (this.lastId) this.#live();
      const end = await this.#read(response, connection);
      if (end) {
        reason = end.reason;
        delay = end.retryAfterMs;
      }
    } catch (error) {
      if (connection !== this.connection) return;
      if (error instanceof Refusal) {
        reason = error.message;
        delay = error.retryAfter * 1000;
        if (![429, 502, 503, 504].includes(error.status)) {
          this.connection = null;
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

  /** @param {Response} response @param {AbortController} connection */
  async #read(response, connection) {
    if (!response.body) return null;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    let watchdog = setTimeout(() => connection.abort(), SILENCE);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (connection !== this.connection) return null;
        if (done) return null;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => connection.abort(), SILENCE);
        for (const { event, data, id } of parser.feed(value)) {
          const end = this.#handle(event, JSON.parse(data));
          if (id !== null) this.lastId = id;
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
        this.lastId = '';
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
      case 'end':
        return { reason: String(data.reason ?? 'the server ended the stream'), retryAfterMs: Number(data.retryAfterMs) || 0 };
    }
    return null;
  }
}
