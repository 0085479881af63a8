// A stream over the connections that all tabs share: the tab's side of `hub.js`.

import { Refusal } from './api.js';

/** @import { StreamEvent } from './connection.js' */

/** Whether connections are few: over TLS the gateway speaks HTTP/2, and one carries any number of streams. */
export function isShared() {
  return location.protocol === 'http:' && 'SharedWorker' in globalThis;
}

/**
 * What `connect` gives, through the worker. The token goes there in a message, and is kept nowhere.
 * @param {string} address
 * @param {string | null} token
 * @param {{ signal: AbortSignal, lastId: string }} options
 * @returns {Promise<ReadableStream<StreamEvent[]>>}
 */
export function subscribe(address, token, { signal, lastId }) {
  return new Promise((resolve, reject) => {
    const worker = new SharedWorker(new URL('hub.js', import.meta.url), { type: 'module' });
    const { port } = worker;
    const left = new AbortController();
    const leave = () => {
      left.abort();
      port.postMessage({ left: true });
      port.close();
    };
    /** @type {ReadableStream<StreamEvent[]>} */
    const events = new ReadableStream({
      start(controller) {
        const fail = (/** @type {unknown} */ error) => {
          leave();
          reject(error);
          // Whatever it was, a stream that had begun asks again, and hears it then.
          controller.error(new TypeError('the connection was lost'));
        };
        port.onmessage = ({ data }) => {
          if (!data.events) return fail(data.status ? new Refusal(data.status, data.message, data.retryAfter) : new TypeError(data.message));
          port.postMessage({ heard: true });
          if (data.events.length) controller.enqueue(data.events);
          resolve(events);
        };
        worker.onerror = () => fail(new TypeError('the worker cannot be started'));
        signal.addEventListener('abort', () => fail(signal.reason), { signal: left.signal });
        // A page that the browser keeps for "back" goes on from its place when it is shown again.
        addEventListener('pagehide', () => fail(new TypeError('the page was left')), { signal: left.signal });
      },
      cancel: leave,
    });
    port.postMessage({ wanted: { address: address.replace('_stream/', ''), token, lastId } });
  });
}
