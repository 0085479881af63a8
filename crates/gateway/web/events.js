// The events of one object, live: the last tab of the drawer.

import { fill, h } from './dom.js';
import { age, count } from './format.js';
import { Stream } from './stream.js';

/** @import { ClusterObject } from './api.js' */

/** Of an object that has very many, the newest are shown. */
const MOST = 200;

/** Names in a field selector: its signs are escaped. @param {string} text */
export function escapeValue(text) {
  return text.replace(/[\\,=]/g, (sign) => `\\${sign}`);
}

/** Which events are about an object. @param {ClusterObject} object */
function about(object) {
  const { uid = '', name = '' } = object.metadata ?? {};
  // The kubelet puts the name of its node where the UID belongs.
  if (object.kind === 'Node') return `involvedObject.uid in (${uid},${escapeValue(name)})`;
  return `involvedObject.uid=${escapeValue(uid)}`;
}

export class ObjectEvents {
  /** @param {HTMLElement} host @param {ClusterObject} object */
  constructor(host, object) {
    this.host = host;
    /** @type {Map<string, ClusterObject>} */
    this.events = new Map();
    this.synced = false;
    const query = new URLSearchParams({ fieldSelector: about(object) });
    if (object.metadata?.namespace) query.set('namespace', object.metadata.namespace);
    /** @param {ClusterObject} event */
    const put = (event) => this.events.set(event.metadata?.uid ?? '', event);
    this.stream = new Stream(`_stream/core/v1/events?${query}`, {
      progress: () => {},
      begin: () => this.events.clear(),
      items: (items) => items.forEach(put),
      synced: () => {
        this.synced = true;
        this.draw();
      },
      change: (type, { object: event }) => {
        if (type === 'deleted') this.events.delete(event?.metadata?.uid ?? '');
        else put(event);
        if (this.synced) this.draw();
      },
      refused: (refusal) => {
        if (this.synced && refusal.temporary) return;
        this.synced = false;
        fill(this.host, h('p', { class: 'note is-bad' }, refusal.message));
      },
    });
    fill(host, h('p', { class: 'note' }, 'Loading …'));
  }

  stop() {
    this.stream.stop();
  }

  /** Draws them, the newest first. */
  draw() {
    if (!this.synced) return;
    const now = Date.now();
    const sorted = [...this.events.values()].map((event) => ({ event, last: lastSeen(event) })).sort((a, b) => b.last - a.last);
    const more = sorted.length - MOST;
    if (sorted.length === 0) {
      fill(this.host, h('p', { class: 'note' }, 'No events about this object. They are shown here as they come.'));
      return;
    }
    fill(this.host, h('ul', { class: 'events' }, ...sorted.slice(0, MOST).map(({ event, last }) => {
      const times = Number(event.series?.count ?? event.count ?? 1);
      return h('li', { class: 'event', 'data-tone': event.type === 'Normal' ? 'good' : 'bad' },
        h('div', { class: 'event-head' }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('strong', {}, String(event.reason ?? '')),
          h('span', { class: 'tag' }, String(event.type ?? '')), times > 1 && h('span', { class: 'event-count' }, `× ${count(times)}`),
          h('span', { class: 'space' }), h('time', {}, Number.isNaN(last) ? '' : `${age(last, now)} ago`)),
        h('p', {}, String(event.message ?? event.note ?? '')),
        h('p', { class: 'event-source' }, [event.source?.component ?? event.reportingComponent, event.source?.host].filter(Boolean).join(' · ')));
    })), more > 0 && h('p', { class: 'note' }, `and ${count(more)} older ones`));
  }
}

/** @param {ClusterObject} event */
function lastSeen(event) {
  return Date.parse(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata?.creationTimestamp ?? '');
}
