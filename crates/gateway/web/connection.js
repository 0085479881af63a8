// A connection to the gateway: server-sent events over `fetch`, which can carry a token where `EventSource` cannot.

import { ask } from './api.js';

/**
 * @typedef {object} StreamEvent
 * @property {string} event
 * @property {string | null} data none in a heartbeat
 * @property {string | null} id where the stream is after it; an empty one means: forget where you were
 */

/**
 * What an address sends, in pieces as they come. It is there as soon as the gateway has said yes.
 * @param {string} address
 * @param {string | null} token
 * @param {{ signal: AbortSignal, lastId?: string }} options
 * @returns {Promise<ReadableStream<StreamEvent[]>>}
 */
export async function connect(address, token, { signal, lastId = '' }) {
  const headers = { accept: 'text/event-stream', ...(lastId ? { 'last-event-id': lastId } : {}) };
  const { body } = await ask(address, token, { signal, headers });
  if (!body) throw new TypeError('the answer has no body');
  const parser = new EventParser();
  /** @type {TransformStream<string, StreamEvent[]>} */
  const parsing = new TransformStream({ transform: (text, controller) => controller.enqueue(parser.feed(text)) });
  return body.pipeThrough(new TextDecoderStream()).pipeThrough(parsing);
}

/** Where a stream is after an event: it goes on from there over another connection. @param {StreamEvent} event @param {string} before */
export function placeAfter({ event, id }, before) {
  return id ?? (event === 'snapshot' || event === 'reset' ? '' : before);
}

/** Splits the text of a stream into events; pieces may end anywhere. */
export class EventParser {
  constructor() {
    this.rest = '';
  }

  /** @param {string} text */
  feed(text) {
    /** @type {StreamEvent[]} */
    const events = [];
    let from = 0;
    const whole = this.rest + text;
    for (;;) {
      const end = whole.indexOf('\n\n', from);
      if (end < 0) break;
      const event = this.#read(whole.slice(from, end));
      if (event.data !== null || event.id !== null) events.push(event);
      from = end + 2;
    }
    this.rest = whole.slice(from);
    return events;
  }

  /** @param {string} block */
  #read(block) {
    let event = 'message';
    /** @type {string | null} */
    let id = null;
    /** @type {string | null} */
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
    return { event, data, id };
  }
}
