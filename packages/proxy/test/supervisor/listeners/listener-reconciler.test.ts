// Tests a reconciler without workers and sockets, on a manual clock.
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

describe('ListenerReconciler', () => {
  let clock: ManualClock;
  let taken: string | undefined;
  let probes: number;
  let isPartial: boolean;
  let maxListenerDescriptors: number;
  beforeEach(() => {
    maxListenerDescriptors = Number.POSITIVE_INFINITY;
    clock = new ManualClock();
    taken = undefined;
    probes = 0;
    isPartial = false;
  });

  test('reports an allocated port that another process takes, and takes the port back when it is free', async () => {
    const reconciler = createReconciler(createMatcher(tableFor(NODE, [webService([])]), 'a'));
    await settled();
    assert.deepEqual(reportOf(reconciler), { bound: true, error: null });
    taken = 'EADDRINUSE';
    reconciler.retry();
    await settled();
    assert.deepEqual(reportOf(reconciler), { bound: true, error: null }, 'the port is not probed again yet');
    await clock.advance(10_000);
    reconciler.retry();
    await settled();
    assert.equal(reportOf(reconciler)?.bound, false);
    assert.match(String(reportOf(reconciler)?.error), /in use by another process/);
    taken = undefined;
    await clock.advance(15_000);
    reconciler.retry();
    await settled();
    assert.deepEqual(reportOf(reconciler), { bound: true, error: null });
  });

  test('retries a failed port in time although the wall clock was set back by hours', async () => {
    taken = 'EADDRINUSE';
    const reconciler = createReconciler(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'));
    await settled();
    assert.match(String(reportOf(reconciler)?.error), /in use/);
    clock.jumpWallClock(-5 * HOUR_MS);
    taken = undefined;
    await clock.advance(15_000);
    reconciler.retry();
    await settled();
    assert.deepEqual(reportOf(reconciler), { bound: true, error: null });
  });

  test('reports the same error while a failed port is retried', async () => {
    taken = 'EADDRINUSE';
    const errors = new Set<string | null | undefined>();
    let reconciler: ListenerReconciler | undefined;
    const onChange = (): void => {
      if (reconciler !== undefined) errors.add(reportOf(reconciler)?.error);
    };
    reconciler = createReconciler(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'), onChange);
    await settled();
    errors.clear();
    const before = probes;
    await clock.advance(15_000);
    reconciler.retry();
    await settled();
    assert.equal(probes, before + 1);
    assert.deepEqual(
      [...errors].map((error) => /in use/.test(String(error))),
      [true],
    );
  });

  test('does not retry sooner after the wall clock was set forward', async () => {
    taken = 'EADDRINUSE';
    const reconciler = createReconciler(createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a'));
    await settled();
    clock.jumpWallClock(5 * HOUR_MS);
    const before = probes;
    reconciler.retry();
    await settled();
    assert.equal(probes, before);
  });

  test('knows whether all listeners are settled without iterating over them after each answer', async () => {
    const count = 200;
    const services = Array.from({ length: count }, (_, at) => ({
      ...webService([ENDPOINT]),
      name: `s${at}`,
      port: 1_000 + at,
    }));
    const { listeners, ...rest } = createMatcher(tableFor(NODE, services), 'a');
    let iterations = 0;
    const countedListeners = new Map(listeners);
    countedListeners.keys = () => {
      iterations += 1;
      return listeners.keys();
    };
    let answers = 0;
    let settledAfter: number | undefined;
    const reconciler: ListenerReconciler = createReconciler({ ...rest, listeners: countedListeners }, () => {
      answers += 1;
      if (answers > 1 && reconciler.isSettled) settledAfter ??= answers;
    });
    await settled();
    assert.ok(reconciler.isSettled);
    assert.ok(answers >= count && settledAfter !== undefined && settledAfter >= count, `${settledAfter} of ${answers}`);
    assert.ok(iterations < 5, `${iterations} iterations`);
  });

  test('returns the same list of reports until a report changes', async () => {
    const matcher = createMatcher(
      tableFor(NODE, [webService([ENDPOINT]), webService([ENDPOINT], { name: 'api', port: 9_090 })]),
      'a',
    );
    const routes = new Map(matcher.routes);
    const reconciler = createReconciler({ ...matcher, routes });
    await settled();
    const before = reconciler.reports();
    assert.equal(before.length, 2);
    assert.ok(before.every(({ bound, listening }) => bound && listening));
    assert.equal(reconciler.reports(), before);
    reconciler.setMode({ kind: 'blocked', reason: 'another proxy serves this node' });
    const blocked = reconciler.reports();
    assert.deepEqual(
      blocked.map(({ error }) => error),
      ['another proxy serves this node', 'another proxy serves this node'],
    );
    assert.equal(reconciler.reports(), blocked);
    const [[key] = assert.fail()] = routes;
    routes.delete(key);
    assert.deepEqual(reconciler.reports(), blocked.slice(1));
  });

  test('is not settled until a new listener is open, and does not wait for a removed listener', async () => {
    const matcher = createMatcher(tableFor(NODE, [webService([ENDPOINT])]), 'a');
    const listeners = new Map(matcher.listeners);
    const reconciler = createReconciler({ ...matcher, listeners });
    assert.equal(reconciler.isSettled, false);
    await settled();
    assert.equal(reconciler.isSettled, true);
    const [[key, routes] = assert.fail()] = listeners;
    listeners.delete(key);
    reconciler.reconcile([key]);
    assert.equal(reconciler.isSettled, true);
    listeners.set(key, routes);
    reconciler.reconcile([key]);
    assert.equal(reconciler.isSettled, false);
    await settled();
    assert.equal(reconciler.isSettled, true);
  });

  test('defers a shared listener until a change is complete, but neither another listener nor its removal', async () => {
    const shared = webService([ENDPOINT], { name: 'shop', port: 443, shared: true });
    const matcher = createMatcher(tableFor(NODE, [webService([ENDPOINT]), shared]), 'a');
    const listeners = new Map(matcher.listeners);
    isPartial = true;
    const reconciler = createReconciler({ ...matcher, listeners });
    await settled();
    const open = (): number[] => reconciler.open.map(({ listener }) => listener.port).toSorted((a, b) => a - b);
    assert.deepEqual(open(), [PORT]);
    reconciler.reconcile([...listeners.keys()]);
    await settled();
    assert.deepEqual(open(), [PORT]);
    isPartial = false;
    reconciler.reconcile([]);
    await settled();
    assert.deepEqual(open(), [443, PORT]);
    isPartial = true;
    const removed = [...listeners].flatMap(([key, { isShared }]) => (isShared ? [key] : []));
    for (const key of removed) listeners.delete(key);
    reconciler.reconcile(removed);
    assert.deepEqual(open(), [PORT]);
  });

  test('leaves listeners to other tenants when one tenant has hundreds of ports, and opens them when others close', async () => {
    maxListenerDescriptors = 100;
    const ports = (tenant: string, from: number, count: number) =>
      Array.from({ length: count }, (_, index) =>
        webService([ENDPOINT], { name: `${tenant}-${index}`, tenant, port: from + index }),
      );
    const all = tableFor(NODE, [...ports('greedy', 1_000, 300), ...ports('small', 2_000, 20)]);
    const matcher = createMatcher(all, 'a');
    const listeners = new Map(matcher.listeners);
    const reconciler = createReconciler({ ...matcher, listeners });
    await settled();
    const open = (from: number): number =>
      reconciler.open.filter(({ listener: { port } }) => port >= from && port < from + 1_000).length;
    assert.deepEqual([open(1_000), open(2_000)], [75, 19]);
    const errors = reconciler.reports().flatMap(({ error }) => error?.replace(/^cannot listen on [^ ]+: /, '') ?? []);
    const shortageOf = (tenant: string): string =>
      `the listeners of tenant "${tenant}" use all file descriptors that they may use; use fewer ports, or ask the operator for a higher limit of open files or fewer workers`;
    assert.deepEqual([...new Set(errors)].toSorted(), [shortageOf('greedy'), shortageOf('small')]);

    const closed = [...listeners].filter(([, { listener }]) => listener.port < 1_010).map(([key]) => key);
    for (const key of closed) listeners.delete(key);
    reconciler.reconcile(closed);
    await clock.advance(15_000);
    reconciler.retry();
    await settled();
    assert.equal(open(2_000), 20);
  });

  function createReconciler(matcher: Matcher, onChange = (): void => undefined): ListenerReconciler {
    const reconciler: ListenerReconciler = new ListenerReconciler({
      matcher,
      clock,
      isPartial: () => isPartial,
      probe: async () => {
        probes += 1;
        return taken;
      },
      // One worker, which opens every listener.
      pool: {
        post: (command) => {
          if (command.kind === 'open-listener') queueMicrotask(() => reconciler.onListening(1, command.listener.id));
        },
        ids: [1],
        mark: () => 1,
        reached: 1,
      },
      maxListenerDescriptors,
      faultOf: () => null,
      onChange,
    });
    reconciler.start();
    return reconciler;
  }
});

function reportOf(reconciler: ListenerReconciler): { bound: boolean; error: string | null } | undefined {
  const [report] = reconciler.reports();
  return report && { bound: report.bound, error: report.error };
}

/** Waits until probes and workers have answered. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
