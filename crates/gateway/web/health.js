// The health view: every informer with its size, its lag and the changes per second, asked for every two seconds.

import { fill, h, svg } from './dom.js';
import { count, counted, duration, rate, size } from './format.js';
import { Refusal, getJson } from './api.js';
import { formatRoute } from './state.js';

/**
 * @typedef {object} InformerReport
 * @property {string} path
 * @property {string} kind
 * @property {number} objects
 * @property {number} bytes as text
 * @property {number} keptBytes
 * @property {number} packed how many objects
 * @property {string} resourceVersion
 * @property {'synced' | 'syncing' | 'failed'} state
 * @property {string | null} reason
 * @property {number} lagSeconds
 * @property {number} ageSeconds
 * @property {number} eventsTotal
 * @property {number} relists
 * @property {{ name: string, error: string }[]} quarantined
 * @property {number} streams
 * @property {number} idleSeconds
 */
/** @typedef {{ memory: { resident: number | null, limit: number | null, objects: number }, informers: InformerReport[], streams?: number }} Report */
/** @typedef {{ total: number, at: number, rates: number[] }} Past */

const PERIOD = 2000;
const POINTS = 60;
const TONES = { synced: 'good', syncing: 'wait', failed: 'bad' };

export class Health {
  constructor() {
    this.element = h('main', { class: 'health', hidden: true, tabindex: -1, 'aria-label': 'Informers' });
    /** @type {Map<string, Past>} */
    this.past = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.shown = false;
  }

  /** @param {boolean} shown */
  show(shown) {
    if (shown === this.shown) return;
    this.shown = shown;
    this.element.hidden = !shown;
    clearTimeout(this.timer);
    if (shown) void this.#poll();
  }

  async #poll() {
    try {
      const report = /** @type {Report} */ (await getJson('_informers'));
      this.#learn(report, performance.now());
      if (this.shown) this.#draw(report);
    } catch (error) {
      const said = error instanceof Refusal ? error.message : 'the gateway does not answer';
      if (this.shown) fill(this.element, h('p', { class: 'message' }, `The informers cannot be shown: ${said}.`));
    }
    if (this.shown) this.timer = setTimeout(() => void this.#poll(), PERIOD);
  }

  /** @param {Report} report @param {number} now */
  #learn(report, now) {
    for (const informer of report.informers) {
      const past = this.past.get(informer.path);
      if (!past || informer.eventsTotal < past.total) {
        this.past.set(informer.path, { total: informer.eventsTotal, at: now, rates: [] });
        continue;
      }
      past.rates.push((informer.eventsTotal - past.total) / Math.max(0.001, (now - past.at) / 1000));
      if (past.rates.length > POINTS) past.rates.shift();
      past.total = informer.eventsTotal;
      past.at = now;
    }
  }

  /** @param {Report} report */
  #draw({ memory, informers, streams = informers.reduce((sum, informer) => sum + informer.streams, 0) }) {
    const objects = informers.reduce((sum, informer) => sum + informer.objects, 0);
    const bytes = informers.reduce((sum, informer) => sum + informer.keptBytes, 0);
    const all = sumRates(informers.map((informer) => this.past.get(informer.path)?.rates ?? []));
    const failed = informers.filter((informer) => informer.state === 'failed').length;
    fill(this.element,
      h('div', { class: 'cards' },
        card('Informers', count(informers.length), failed ? `${counted(failed, 'informer')} failed` : 'all in order', failed ? 'bad' : 'good'),
        card('Objects in memory', count(objects), size(bytes)),
        card('Changes per second', rate(all.at(-1) ?? 0), sparkline(all, 'All informers')),
        card('Streams', count(streams), streams === 1 ? 'one page or client' : 'pages and clients'),
        memoryCard(memory, bytes)),
      informers.length === 0 ? h('p', { class: 'message' }, 'No informer runs yet. The first look at a kind starts one.')
        : h('div', { class: 'health-table' }, h('table', {},
          h('thead', {}, h('tr', {}, ...['Kind', 'State', 'Objects', 'Memory', 'Version', 'Lag', 'Changes/s', 'Streams', 'Relists', 'Up for'].map((head) => h('th', { scope: 'col' }, head)))),
          h('tbody', {}, ...informers.flatMap((informer) => this.#rows(informer))))));
  }

  /** @param {InformerReport} informer */
  #rows(informer) {
    const rates = this.past.get(informer.path)?.rates ?? [];
    const bad = informer.quarantined ?? [];
    const row = h('tr', { 'data-path': informer.path },
      h('th', { scope: 'row' }, h('a', { href: formatRoute({ path: informer.path }) }, informer.kind), h('span', { class: 'kind-path' }, informer.path)),
      h('td', {}, h('span', { class: 'toned', 'data-tone': TONES[informer.state] ?? '' }, h('span', { class: 'dot', 'aria-hidden': 'true' }), informer.state),
        informer.reason && h('span', { class: 'health-reason' }, informer.reason)),
      number(count(informer.objects)), number(size(informer.keptBytes)), number(informer.resourceVersion),
      number(informer.lagSeconds < 1 ? `${Math.round(informer.lagSeconds * 1000)} ms` : duration(informer.lagSeconds)),
      h('td', {}, h('div', { class: 'spark-cell' }, sparkline(rates, informer.kind), h('span', { class: 'spark-now' }, rate(rates.at(-1) ?? 0)))),
      number(count(informer.streams)), number(count(informer.relists)), number(duration(informer.ageSeconds)));
    if (bad.length === 0) return [row];
    return [row, h('tr', { class: 'quarantine' }, h('td', { colspan: 10 },
      h('strong', {}, `${counted(bad.length, 'object')} cannot be read and ${bad.length === 1 ? 'is' : 'are'} left out:`),
      h('ul', {}, ...bad.map(({ name, error }) => h('li', {}, h('code', {}, name), ` ${error}`)))))];
  }
}

/** @param {string} text */
function number(text) {
  return h('td', { class: 'is-number' }, text);
}

/** @param {string} title @param {string} value @param {string | Node} detail @param {string} tone */
function card(title, value, detail, tone = '') {
  return h('section', { class: 'card' }, h('h2', {}, title), h('p', { class: 'card-value' }, value), h('div', { class: 'card-detail', 'data-tone': tone }, detail));
}

/** @param {Report['memory']} memory @param {number} bytes what the objects take */
function memoryCard(memory, bytes) {
  // Not every system tells what a process takes.
  const resident = memory.resident ?? bytes;
  const share = memory.limit ? Math.min(1, resident / memory.limit) : 0;
  const bar = h('div', {
    class: 'meter', role: 'meter', 'aria-label': 'Memory', 'aria-valuemin': 0, 'aria-valuemax': memory.limit ?? resident, 'aria-valuenow': resident,
    'aria-valuetext': size(resident), 'data-tone': share > 0.9 ? 'bad' : share > 0.75 ? 'wait' : 'good',
  }, h('span', {}));
  const filled = bar.firstElementChild;
  // Without a limit the bar shows how much of the process the objects are.
  if (filled instanceof HTMLElement) filled.style.width = `${Math.round((memory.limit ? share : bytes / Math.max(1, resident)) * 100)}%`;
  return h('section', { class: 'card' }, h('h2', {}, 'Memory'), h('p', { class: 'card-value' }, size(resident)),
    h('div', { class: 'card-detail' }, bar, memory.limit ? `of ${size(memory.limit)}` : `no limit; ${size(bytes)} are objects`));
}

/** @param {number[][]} series */
function sumRates(series) {
  const longest = Math.max(0, ...series.map((rates) => rates.length));
  return Array.from({ length: longest }, (_, at) => series.reduce((sum, rates) => sum + (rates[rates.length - longest + at] ?? 0), 0));
}

/** @param {number[]} rates @param {string} name */
export function sparkline(rates, name) {
  const [width, height] = [120, 24];
  const highest = Math.max(1, ...rates);
  const points = rates.map((value, at) => {
    const x = width - (rates.length - 1 - at) * (width / (POINTS - 1));
    return [x.toFixed(1), (height - 2 - (value / highest) * (height - 4)).toFixed(1)].join(' ');
  });
  const label = `${name}: ${rate(rates.at(-1) ?? 0)} changes per second now, at most ${rate(rates.length ? Math.max(...rates) : 0)}`;
  const first = points[0]?.split(' ')[0] ?? '0';
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    svg('path', { class: 'spark-base', d: `M0 ${height - 1}H${width}` }),
    points.length > 1 && svg('path', { class: 'spark-area', d: `M${first} ${height}L${points.join('L')}L${width} ${height}Z` }),
    points.length > 1 && svg('path', { class: 'spark-line', d: `M${points.join('L')}` }));
}
