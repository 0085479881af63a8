// A proxy in front of the gateway that knows how many connections its streams hold, and can refuse a token.

import { createServer, request } from 'node:http';

export class Proxy {
  /** @param {() => string} gateway where it is now */
  static async start(gateway) {
    const proxy = new Proxy();
    /** Streams that are open: what each was asked for, and with which token. */
    proxy.streams = new Set();
    /** Tokens that are no longer good. */
    proxy.expired = new Set();
    proxy.server = createServer((asked, answer) => proxy.#pass(new URL(gateway()), asked, answer));
    await new Promise((resolve) => { proxy.server.listen(0, '127.0.0.1', resolve); });
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  #pass({ hostname, port, host }, asked, answer) {
    const token = asked.headers.authorization?.replace('Bearer ', '');
    const isPage = asked.url === '/' || asked.url.startsWith('/_page/');
    if (this.expired.has(token) && !isPage) {
      answer.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ kind: 'Status', message: 'expired', code: 401 }));
      return;
    }
    // The gateway is asked under its own name, also by a page that says where it comes from.
    const { authorization, origin, ...headers } = asked.headers;
    const passed = request({ hostname, port, path: asked.url, method: asked.method, headers: { ...headers, host } }, (answered) => {
      answer.writeHead(answered.statusCode, answered.headers);
      answer.flushHeaders();
      answered.pipe(answer);
      answered.on('error', () => answer.destroy());
    });
    passed.on('error', () => answer.destroy());
    passed.end();
    const stream = { token, of: new URL(asked.url, this.url).searchParams.getAll('of'), cut: () => answer.destroy() };
    if (asked.url.startsWith('/_stream')) this.streams.add(stream);
    answer.on('close', () => {
      passed.destroy();
      this.streams.delete(stream);
    });
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((resolve) => { this.server.close(resolve); });
  }
}
