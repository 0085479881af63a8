// The parts of the page that need no browser.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { scalar, toYaml, yamlText } from '../yaml.js';
import { parseQuantity } from '../order.js';
import { formatRoute, parseRoute } from '../state.js';
import { EventParser } from '../stream.js';
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
    const text = ': hello\n\nid: 7\nevent: added\ndata: {"a":\ndata: 1}\n\nevent: end\ndata:{}\n\n';
    for (let piece = 1; piece < text.length; piece += 1) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < text.length; at += piece) events.push(...parser.feed(text.slice(at, at + piece)));
      assert.deepEqual(events, [{ event: 'added', data: '{"a":\n1}', id: '7' }, { event: 'end', data: '{}', id: null }]);
      assert.equal(new EventParser().feed('id:\nevent: end\ndata: {}\n\n')[0].id, '', 'to be forgotten');
    }
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
