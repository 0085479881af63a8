// A cluster of the embedded API server, a gateway in front of it, and writing to it over HTTP.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const binary = process.env.INFORMER_BIN ?? '';

/** Every process that was started and has not ended yet: none outlives the tests. */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Starts the binary and waits until it has printed an address. */
function start(parameters, address) {
  const child = spawn(binary, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } });
  running.add(child);
  const ended = new Promise((resolve) => child.once('close', (code) => { running.delete(child); resolve(code); }));
  return new Promise((resolve, reject) => {
    let said = '';
    const hear = (piece) => {
      said += piece;
      const found = address.exec(said);
      if (found) resolve({ child, ended, address: found[1] });
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('error', reject);
    void ended.then((code) => reject(new Error(`${parameters.join(' ')} ended with ${code}:\n${said}`)));
  });
}

export class Cluster {
  /** @param {{ pods?: number, churn?: number }} size */
  static async start({ pods, churn } = {}) {
    const cluster = new Cluster();
    cluster.folder = await mkdtemp(join(tmpdir(), 'informer-page-'));
    cluster.kubeconfig = join(cluster.folder, 'kubeconfig');
    const generated = pods ? ['--pods', String(pods)] : [];
    const moving = churn ? ['--churn', String(churn)] : [];
    cluster.server = await start(
      ['apiserver', '--listen', '127.0.0.1:0', '--write-kubeconfig', cluster.kubeconfig, ...generated, ...moving],
      /Kubernetes API server at (http:\/\/\S+?),?\s/,
    );
    await cluster.startGateway('127.0.0.1:0');
    return cluster;
  }

  /** @param {string} listen */
  async startGateway(listen) {
    this.gateway = await start(['serve', '--kubeconfig', this.kubeconfig, '--listen', listen], /(http:\/\/127\.0\.0\.1:\d+)/);
    this.url = this.gateway.address;
  }

  async stopGateway() {
    this.gateway.child.kill('SIGTERM');
    await this.gateway.ended;
  }

  async stop() {
    await this.stopGateway();
    this.server.child.kill('SIGTERM');
    await this.server.ended;
    await rm(this.folder, { recursive: true, force: true });
  }

  /** @param {'GET' | 'POST' | 'PUT' | 'DELETE'} method @param {string} path @param {object} [body] */
  async send(method, path, body) {
    const answer = await fetch(this.server.address + path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body ? JSON.stringify(body) : undefined,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  async namespace(name) {
    await this.send('POST', '/api/v1/namespaces', { metadata: { name } });
  }

  /** A pod that runs, or is in the phase that is named. */
  async pod(namespace, name, { labels = {}, annotations = {}, phase = 'Running', ownerReferences = [] } = {}) {
    const pod = await this.send('POST', `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, labels, annotations, ownerReferences },
      spec: { containers: [{ name: 'main', image: 'registry.example.com/main:1' }] },
    });
    return this.podPhase(pod, phase);
  }

  async podPhase(pod, phase) {
    const ready = phase === 'Running';
    const state = ready ? { running: { startedAt: pod.metadata.creationTimestamp } } : { waiting: { reason: 'ContainerCreating' } };
    return this.send('PUT', `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}/status`, {
      ...pod,
      status: {
        phase,
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: pod.metadata.creationTimestamp }],
        containerStatuses: [{ name: 'main', image: 'registry.example.com/main:1', imageID: '', ready, restartCount: 0, state }],
      },
    });
  }

  async configMap(namespace, name, data, metadata = {}) {
    return this.send('POST', `/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name, ...metadata }, data });
  }

  /** An event about an object. */
  async event(object, kind, reason, message, type = 'Warning') {
    const { namespace = 'default', name, uid } = object.metadata;
    const now = new Date().toISOString().replace(/\.\d+/, '');
    return this.send('POST', `/api/v1/namespaces/${namespace}/events`, {
      metadata: { name: `${reason.toLowerCase()}-${Math.random().toString(36).slice(2)}` },
      involvedObject: { kind, namespace: object.metadata.namespace, name, uid, apiVersion: 'v1' },
      reason, message, type, firstTimestamp: now, lastTimestamp: now, count: 3, source: { component: 'test' },
    });
  }
}
