// The book alone, on a clock that stands still: workers and sockets are what the test says.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { createMatcher, type Matcher } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { ListenerReconciler } from '../../../src/supervisor/listeners/listener-reconciler.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';
import { tableFor } from '../../fixtures/tables.ts';

const NODE = { a: '192.0.2.1' };
const ENDPOINT = { address: '192.0.2.9', port: 80 };
const HOUR_MS = 3_600_000;

describe('listeners', () => {
  let clock: ManualClock;
  let taken: string | undefined;
  let probes: number;
  let isPartial: boolean;
  beforeEach(() => {
    clock = new ManualClock();
    taken = undefined;
    probes = 0;
    isPartial = false;
  });

  test('a foreign process that takes a held port is noticed, and the port taken back when it goes', async () => {
    const book = bookOf(createMatcher(tableFor(NODE, [webService([])]), 'a'));
    await settled();
    assert.deepEqual(said(book), { bound: true, error: null });
    taken = 'EADDRINUSE';
    book.retry();
    await settled();
    assert.deepEqual(said(book), { bound: true, error: null }, 'it is not looked at all the time');
    await clock.advance(10_000);
    book.retry();
    await settled();
    assert.equal(said(book)?.bound, false);
    assert.match(String(said(book)?.error), /in use by another process/);
    taken = undefined;
    await clock.advance(15_000);
    book.retry();
    await settled();
    assert.deepEqual(said(book), { bound: true, error: null });
  });

  test('a port that failed is tried again in time, also after the wall clock was set back by hours', async () => {
    taken = 'EADDRINUSE';
    const book = bookOf(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'));
    await settled();
    assert.match(String(said(book)?.error), /in use/);
    clock.jumpWallClock(-5 * HOUR_MS);
    taken = undefined;
    await clock.advance(15_000);
    book.retry();
    await settled();
    assert.deepEqual(said(book), { bound: true, error: null });
  });

  test('of a port that failed the same is said while it is tried again', async () => {
    taken = 'EADDRINUSE';
    const heard = new Set<string | null | undefined>();
    let book: ListenerReconciler | undefined;
    const hear = (): void => {
      if (book !== undefined) heard.add(said(book)?.error);
    };
    book = bookOf(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'), hear);
    await settled();
    heard.clear();
    const before = probes;
    await clock.advance(15_000);
    book.retry();
    await settled();
    assert.equal(probes, before + 1);
    assert.deepEqual(
      [...heard].map((error) => /in use/.test(String(error))),
      [true],
    );
  });

  test('after the wall clock was set forward nothing is tried sooner', async () => {
    taken = 'EADDRINUSE';
    const book = bookOf(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'));
    await settled();
    clock.jumpWallClock(5 * HOUR_MS);
    const before = probes;
    book.retry();
    await settled();
    assert.equal(probes, before);
  });

  test('whether all are settled is asked after each answer, and costs no look at all of them', async () => {
    const count = 200;
    const services = Array.from({ length: count }, (_, at) => ({
      ...webService([ENDPOINT]),
      name: `s${at}`,
      port: 1_000 + at,
    }));
    const { listeners, ...rest } = createMatcher(tableFor(NODE, services), 'a');
    let looks = 0;
    const watched = new Map(listeners);
    watched.keys = () => {
      looks += 1;
      return listeners.keys();
    };
    let answers = 0;
    let settledAfter: number | undefined;
    const book: ListenerReconciler = bookOf({ ...rest, listeners: watched }, () => {
      answers += 1;
      if (answers > 1 && book.isSettled) settledAfter ??= answers;
    });
    await settled();
    assert.ok(book.isSettled);
    assert.ok(answers >= count && settledAfter !== undefined && settledAfter >= count, `${settledAfter} of ${answers}`);
    assert.ok(looks < 5, `${looks} looks at all`);
  });

  test('what is said of them is the same list until something else is said', async () => {
    const matcher = createMatcher(
      tableFor(NODE, [webService([ENDPOINT]), webService([ENDPOINT], { name: 'api', port: 9_090 })]),
      'a',
    );
    const routes = new Map(matcher.routes);
    const book = bookOf({ ...matcher, routes });
    await settled();
    const before = book.reports();
    assert.equal(before.length, 2);
    assert.ok(before.every(({ bound, listening }) => bound && listening));
    assert.equal(book.reports(), before);
    book.setMode({ kind: 'blocked', reason: 'another proxy serves this node' });
    const blocked = book.reports();
    assert.deepEqual(
      blocked.map(({ error }) => error),
      ['another proxy serves this node', 'another proxy serves this node'],
    );
    assert.equal(book.reports(), blocked);
    const [[key] = assert.fail()] = routes;
    routes.delete(key);
    assert.deepEqual(book.reports(), blocked.slice(1));
  });

  test('what is wanted anew is not settled before it is there, and what is no longer wanted is waited for by nobody', async () => {
    const matcher = createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a');
    const listeners = new Map(matcher.listeners);
    const book = bookOf({ ...matcher, listeners });
    assert.equal(book.isSettled, false);
    await settled();
    assert.equal(book.isSettled, true);
    const [[key, routes] = assert.fail()] = listeners;
    listeners.delete(key);
    book.reconcile([key]);
    assert.equal(book.isSettled, true);
    listeners.set(key, routes);
    book.reconcile([key]);
    assert.equal(book.isSettled, false);
    await settled();
    assert.equal(book.isSettled, true);
  });

  test('one that several share opens when all of a change are here; others do not wait for it, and its end for nobody', async () => {
    const shared = webService([ENDPOINT], { name: 'shop', port: 443, shared: true });
    const matcher = createMatcher(tableFor(NODE, [webService([ENDPOINT]), shared]), 'a');
    const listeners = new Map(matcher.listeners);
    isPartial = true;
    const book = bookOf({ ...matcher, listeners });
    await settled();
    const open = (): number[] => book.open.map(({ listener }) => listener.port).toSorted((a, b) => a - b);
    assert.deepEqual(open(), [PORT]);
    book.reconcile([...listeners.keys()]);
    await settled();
    assert.deepEqual(open(), [PORT]);
    isPartial = false;
    book.reconcile([]);
    await settled();
    assert.deepEqual(open(), [443, PORT]);
    isPartial = true;
    const gone = [...listeners].flatMap(([key, { isShared }]) => (isShared ? [key] : []));
    for (const key of gone) listeners.delete(key);
    book.reconcile(gone);
    assert.deepEqual(open(), [PORT]);
  });

  function bookOf(matcher: Matcher, onChange = (): void => undefined): ListenerReconciler {
    const book: ListenerReconciler = new ListenerReconciler({
      matcher,
      clock,
      isPartial: () => isPartial,
      probe: async () => {
        probes += 1;
        return taken;
      },
      // One worker, which can whatever it is told.
      pool: {
        post: (command) => {
          if (command.kind === 'open-listener') queueMicrotask(() => book.onListening(1, command.listener.id));
        },
        ids: [1],
        mark: () => 1,
        reached: 1,
      },
      faultOf: () => null,
      onChange,
    });
    book.start();
    return book;
  }
});

function said(book: ListenerReconciler): { bound: boolean; error: string | null } | undefined {
  const [report] = book.reports();
  return report && { bound: report.bound, error: report.error };
}

/** Probes and workers have answered. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
