// The parts of the page that need no browser.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { scalar, toYaml, yamlText } from '../yaml.js';
import { parseQuantity } from '../order.js';
import { formatRoute, parseRoute } from '../state.js';
import { EventParser, placeAfter } from '../connection.js';
import { Connection, Hub, MOST_CONNECTIONS, MOST_STREAMS, Subscription, toJoin } from '../hub.js';
import { indexOfByte, locate } from '../filters.js';
import { cellText, toneOf } from '../columns.js';
import { RowStore } from '../rows.js';
import { duration, parseDuration, size } from '../format.js';
import { fit } from '../picker.js';

describe('YAML', () => {
  it('is written as kubectl writes it', () => {
    const text = yamlText(toYaml({ apiVersion: 'v1', metadata: { name: 'a', labels: {} }, list: [{ a: 1, b: [true, null] }, 'x', []], empty: '' }));
    assert.equal(text, 'apiVersion: v1\nmetadata:\n  name: a\n  labels: {}\nlist:\n- a: 1\n  b:\n  - true\n  - null\n- x\n- []\nempty: ""\n');
  });

  it('quotes text that would be read as something else', () => {
    for (const text of ['', 'yes', 'Null', '1', '-1.5', '1e3', '0x1f', '2026-11-15', 'a: b', 'a #b', '- a', '*a', '&a', '!a', '{a', '[a', '"a', "'a", '%a', '@a', 'a ', ' a', 'a:', '~', '\t', 'a\u0085b', '.5', '?', '|', '>']) {
      assert.match(scalar(text), /^".*"$/, JSON.stringify(text));
    }
    for (const text of ['a', 'a/b', 'a:b', 'a#b', 'nginx:1.25', '/bin/sh', 'é', '$(POD)', 'a-b', 'a,b']) assert.equal(scalar(text), text);
  });

  it('writes lines as a block only where a block keeps every sign', () => {
    assert.equal(yamlText(toYaml({ a: 'x\ny\n' })), 'a: |\n  x\n  y\n');
    assert.equal(yamlText(toYaml({ a: 'x\ny' })), 'a: |-\n  x\n  y\n');
    assert.equal(yamlText(toYaml({ a: 'x\n\ny\n\n' })), 'a: |+\n  x\n\n  y\n\n');
    assert.equal(yamlText(toYaml({ a: ' x\ny' })), 'a: " x\\ny"\n');
    assert.equal(yamlText(toYaml({ a: 'x \ny' })), 'a: "x \\ny"\n');
    assert.equal(yamlText(toYaml({ a: ['x\ny'] })), 'a:\n- |-\n  x\n  y\n');
  });
});

describe('order', () => {
  it('knows quantities and times by value', () => {
    assert.equal(parseQuantity('250m'), 0.25);
    assert.equal(parseQuantity('1Gi'), 2 ** 30);
    assert.ok(Number.isNaN(parseQuantity('1/2')));
    assert.equal(parseDuration('5m12s'), 312);
    assert.ok(Number.isNaN(parseDuration('5')));
  });

  it('sorts by several columns, each by its meaning', () => {
    const store = new RowStore();
    store.setSort([{ column: 'Size', descending: true }, { column: 'Ready', descending: false }]);
    store.clear({ namespaced: false });
    store.beginSnapshot(4, [{ name: 'Name', type: 'string', format: 'name' }, { name: 'Size', type: 'string' }, { name: 'Ready', type: 'string' }]);
    store.addItems([['a', '900Mi', '1/1'], ['b', '1Gi', '10/10'], ['c', '1Gi', '9/10'], ['d', '<none>', '0/1']].map((cells) => ({ name: cells[0], uid: cells[0], cells })));
    store.commitSnapshot();
    assert.deepEqual(store.view.map((row) => row.name), ['d', 'c', 'b', 'a']);
  });
});

describe('rows', () => {
  /** @param {string} name @param {string} status */
  const wire = (name, status) => ({ name, uid: name, namespace: 'n', created: '2026-01-01T00:00:00Z', cells: [name, status, '5m'] });
  const columns = [{ name: 'Name', type: 'string', format: 'name' }, { name: 'Status', type: 'string' }, { name: 'Age', type: 'string' }];
  const loaded = () => {
    const store = new RowStore();
    store.clear({ namespaced: true });
    store.beginSnapshot(3, columns);
    store.addItems([wire('b', 'Running'), wire('a', 'Running'), wire('c', 'Pending')]);
    store.commitSnapshot();
    return store;
  };
  const names = (/** @type {RowStore} */ store) => store.view.map((row) => row.name);

  it('show a change of cells, with the cells that changed, and not a new age alone', () => {
    const store = loaded();
    store.change('modified', { ...wire('a', 'Running'), cells: ['a', 'Running', '6m'] });
    assert.equal(store.pending.size, 0);
    store.change('modified', wire('a', 'Error'));
    store.flush(1000);
    assert.equal(store.rows.get('a')?.mark, 'changed');
    assert.deepEqual([...store.rows.get('a')?.changedCells ?? []], [1]);
  });

  it('with a time that has passed let it grow, and keep their order', () => {
    const store = new RowStore();
    store.clear({ namespaced: false });
    store.setSort([{ column: 'Last Seen', descending: false }]);
    store.beginSnapshot(2, [{ name: 'Last Seen', type: 'string' }]);
    store.addItems([{ name: 'old', cells: ['10m'] }, { name: 'new', cells: ['30s'] }, { name: 'odd', cells: ['<unknown>'] }]);
    store.commitSnapshot();
    assert.deepEqual(names(store), ['new', 'old', 'odd']);
    const [row] = store.view;
    const [column] = store.columns;
    assert.ok(row && column);
    assert.equal(cellText(row, column, row.received + 45_000), '75s');
    assert.equal(cellText(/** @type {any} */ (store.view[2]), column, row.received + 45_000), '<unknown>');
  });

  it('that go stay for a moment and count no more', () => {
    const store = loaded();
    store.change('deleted', wire('a', 'Running'));
    store.flush(1000);
    assert.deepEqual(names(store), ['a', 'b', 'c']);
    assert.deepEqual(store.counts, { shown: 2, total: 2 });
    store.flush(2000);
    assert.deepEqual(names(store), ['b', 'c']);
  });

  it('wait while paused, one state per object', () => {
    const store = loaded();
    store.paused = true;
    store.change('added', wire('d', 'Pending'));
    store.change('modified', wire('d', 'Running'));
    store.change('added', wire('e', 'Pending'));
    store.change('deleted', wire('e', 'Pending'));
    store.flush(1000);
    assert.deepEqual(names(store), ['a', 'b', 'c']);
    assert.equal(store.pending.size, 1);
    store.paused = false;
    store.flush(1000);
    assert.deepEqual(names(store), ['a', 'b', 'c', 'd']);
  });

  it('of a later snapshot are shown as changes', () => {
    const store = loaded();
    store.beginSnapshot(2, columns);
    store.addItems([wire('a', 'Running'), wire('z', 'Running')]);
    store.commitSnapshot();
    store.flush(1000);
    assert.deepEqual([...store.rows.values()].map((row) => `${row.name} ${row.mark}`).sort(), ['a ', 'b gone', 'c gone', 'z added']);
    store.flush(9000);
    assert.deepEqual(names(store), ['a', 'z']);
  });

  it('end where a sort from the beginning would put them, after any changes', () => {
    const store = loaded();
    store.setSort([{ column: 'Status', descending: false }]);
    let seed = 7;
    const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 2147483647) % below;
    for (let step = 1; step < 400; step += 1) {
      const name = `p${random(40)}`;
      if (random(3) === 0) store.change('deleted', wire(name, ''));
      else store.change('modified', wire(name, `s${random(5)}`));
      if (random(4) === 0) store.flush(step * 100);
    }
    store.flush(1e6);
    store.flush(2e6);
    const merged = names(store);
    assert.deepEqual(store.view.map((row) => row.index), store.view.map((_, at) => at));
    store.setSort([...store.sort]);
    assert.deepEqual(merged, names(store));
    assert.equal(merged.length, store.rows.size);
  });
});

describe('address', () => {
  it('comes back as the route it was made from', () => {
    const route = { path: 'core/v1/pods', namespaces: ['a', 'b'], labels: 'app in (x,y)', fields: 'a.b=c d&e', q: '100% #1', sort: [{ column: 'Age', descending: true }, { column: 'Up-to-date', descending: false }], wide: true, object: 'n/<img>', tab: /** @type {const} */ ('yaml') };
    assert.deepEqual(parseRoute(formatRoute(route)), route);
  });

  it('of any text is a route', () => {
    for (const text of ['', '#', '#/', '#/%zz?%zz=%', '#?&&==', '#/a/b/c/d?tab=nonsense&sort=,-,&namespace=']) assert.equal(typeof formatRoute(parseRoute(text)), 'string');
  });
});

describe('stream', () => {
  it('is read in pieces of any size', () => {
    const text = ': hello\n\nid: 7\nevent: added\ndata: {"a":\ndata: 1}\n\n: heartbeat\nid: 8\n\nevent: end\ndata:{}\n\n';
    for (let piece = 1; piece < text.length; piece += 1) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < text.length; at += piece) events.push(...parser.feed(text.slice(at, at + piece)));
      assert.deepEqual(events, [{ event: 'added', data: '{"a":\n1}', id: '7' }, { event: 'message', data: null, id: '8' }, { event: 'end', data: '{}', id: null }]);
      assert.equal(new EventParser().feed('id:\nevent: end\ndata: {}\n\n')[0].id, '', 'to be forgotten');
    }
  });
});

describe('connections', () => {
  const subscription = (/** @type {string} */ address, lastId = '', token = '') => new Subscription({ address, token, lastId }, () => {});
  const connection = (/** @type {string[]} */ ids, token = '') => new Connection(ids.map((id) => subscription('core/v1/pods', id, token)));
  let seed = 11;
  const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 2147483647) % below;
  const settle = () => new Promise((resolve) => { setImmediate(resolve); });

  /** A gateway with one kind, to which changes are made; and what each tab has heard of it. */
  class World {
    constructor() {
      this.version = 0;
      /** @type {Map<AbortSignal, { controller: ReadableStreamDefaultController<any>, token: string | null, count: number }>} */
      this.open = new Map();
      /** @type {Map<Subscription, string>} */
      this.tabs = new Map();
      /** @type {string[]} */
      this.wrong = [];
      this.hub = new Hub(async (address, token, { signal }) => new ReadableStream({
        start: (controller) => {
          const places = new URL(address, 'http://gateway').searchParams.getAll('of').map((of) => new URL(of, 'http://gateway').searchParams.get('lastEventId'));
          this.open.set(signal, { controller, token, count: places.length });
          signal.addEventListener('abort', () => { this.open.delete(signal); controller.error(signal.reason); });
          places.forEach((place, stream) => controller.enqueue([of(stream), ...(place === null ? [said('snapshot', null)] : from(Number(place), this.version))]));
        },
      }));
    }

    /** Something changes; a snapshot that is on its way is complete with it. */
    change(times = 1) {
      this.version += times;
      for (const { controller, count } of this.open.values()) {
        for (let stream = 0; stream < count; stream += 1) controller.enqueue([of(stream), ...from(this.version - times, this.version)]);
      }
    }

    add(token = '') {
      const tab = new Subscription({ address: 'core/v1/pods?as=table', token, lastId: '' }, (message) => {
        tab.unheard = 0;
        if (!('events' in message)) this.tabs.delete(tab);
        else for (const event of message.events) this.#hear(tab, event);
      });
      this.tabs.set(tab, '');
      this.hub.add(tab);
      return tab;
    }

    /** @param {Subscription} tab @param {{ event: string, data: string | null, id: string | null }} event */
    #hear(tab, event) {
      const before = this.tabs.get(tab) ?? '';
      if (event.event === 'added' && before && Number(event.id) !== Number(before) + 1) this.wrong.push(`${event.id} after ${before}`);
      this.tabs.set(tab, placeAfter(event, before));
    }

    check() {
      assert.deepEqual(this.wrong, [], 'nothing is lost or told twice');
      assert.ok(this.open.size <= MOST_CONNECTIONS);
      const carried = [...this.hub.connections].flatMap((each) => [...each.members.values()].map((member) => ({ each, member })));
      assert.deepEqual(new Set(carried.map(({ member }) => member)), new Set(this.tabs.keys()));
      assert.equal(carried.length, this.tabs.size, 'each is on one connection');
      for (const { each, member } of carried) assert.ok(each.token === member.token && each.members.size <= MOST_STREAMS);
    }
  }
  const said = (/** @type {string} */ event, /** @type {string | null} */ id) => ({ event, data: '{}', id });
  const of = (/** @type {number} */ stream) => ({ event: 'of', data: JSON.stringify({ stream }), id: null });
  const from = (/** @type {number} */ place, /** @type {number} */ to) => Array.from({ length: to - place }, (_, at) => said('added', String(place + at + 1)));

  it('that cost least are joined: what loads is left alone, and tokens never meet', () => {
    const [loading, two, one, other] = [connection(['']), connection(['5', '6']), connection(['7']), connection(['8'], 'mine')];
    assert.deepEqual(toJoin([loading, two, one, other]), [two, one]);
    assert.deepEqual(toJoin([loading, one, other]), [loading, one]);
    assert.equal(toJoin([one, other]), null);
    assert.equal(toJoin([connection(Array(MOST_STREAMS).fill('1')), one]), null);
    assert.equal(toJoin([new Connection([subscription('x'.repeat(5000))]), new Connection([subscription('y'.repeat(5000))])]), null);
  });

  it('are no more than four, and nothing is lost or told twice, whoever comes and goes', async () => {
    const world = new World();
    for (let step = 0; step < 3000; step += 1) {
      const tabs = [...world.tabs.keys()];
      const act = random(8);
      if (act < 3 && tabs.length < 60) world.add(['', '', 'mine', 'yours'][random(4)]);
      else if (act < 5 && tabs.length) {
        const tab = /** @type {Subscription} */ (tabs[random(tabs.length)]);
        world.tabs.delete(tab);
        world.hub.remove(tab);
      } else world.change(1 + random(3));
      if (random(3) === 0) await settle();
      world.check();
    }
    await settle();
    world.change();
    await settle();
    for (const place of world.tabs.values()) assert.equal(place, String(world.version));
    for (const tab of world.tabs.keys()) world.hub.remove(tab);
    await settle();
    assert.equal(world.open.size, 0);
  });

  it('that cannot be had are refused in words', () => {
    const world = new World();
    for (const token of ['a', 'b', 'c', 'd']) world.add(token);
    const tab = world.add('e');
    assert.ok(!world.tabs.has(tab));
    world.check();
  });

  it('let go of a tab that no longer hears', async (t) => {
    t.mock.timers.enable({ apis: ['Date'] });
    const world = new World();
    const deaf = subscription('core/v1/pods?as=table');
    world.hub.add(deaf);
    for (let beat = 0; beat < 4; beat += 1) {
      await settle();
      assert.equal(world.open.size, 1);
      t.mock.timers.tick(10_000);
      world.change();
    }
    await settle();
    assert.equal(world.open.size, 0);
  });
});

describe('filters', () => {
  it('know which of them an error is about, and where', () => {
    const message = 'the parameter fieldSelector="é..b" cannot be read: field selector "é..b": expected a field name at byte 3, found `.`';
    assert.deepEqual(locate(message), { about: 'fields', byte: 3 });
    assert.equal(indexOfByte('é..b', 3), 2);
    assert.equal(locate('label selector "a===b": expected a value at byte 3').about, 'labels');
    assert.equal(locate('no such page').about, null);
  });
});

describe('words', () => {
  it('have the tone that they mean', () => {
    for (const [text, tone] of [['Running', 'good'], ['Bound', 'good'], ['Pending', 'wait'], ['Terminating', 'wait'], ['Ready,SchedulingDisabled', 'wait'], ['CrashLoopBackOff', 'bad'], ['Init:Error', 'bad'], ['NotReady', 'bad'], ['Completed', 'done'], ['Whatever', '']]) {
      assert.equal(toneOf(text ?? ''), tone, text);
    }
  });

  it('for sizes and times are short', () => {
    assert.deepEqual([size(0), size(1536), size(300 * 2 ** 20)], ['0 B', '1.5 KiB', '300 MiB']);
    assert.deepEqual([0, 119, 312, 4000, 20_000, 200_000, 90_000_000].map(duration), ['0s', '119s', '5m12s', '66m', '5h33m', '2d7h', '2y311d']);
  });

  it('find kinds by name, short name and group, the closest first', () => {
    const kind = (/** @type {string} */ resource, /** @type {string} */ group, /** @type {string[]} */ shortNames) => /** @type {any} */ ({ resource, group, kind: resource, singular: resource.slice(0, -1), shortNames, categories: ['all'], path: `${group || 'core'}/v1/${resource}` });
    const deployments = kind('deployments', 'apps', ['deploy']);
    assert.deepEqual(['deploy', 'dep', 'ploy', 'apps', 'all', 'deploy apps', 'nope'].map((text) => fit(deployments, text)), [0, 1, 2, 3, 4, 3, Infinity]);
  });
});
