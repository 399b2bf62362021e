import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEndpointStats, type EndpointStats } from '@weir/model';
import type { Session } from '../../src/relay/session.ts';
import { SessionTerminator } from '../../src/relay/session-terminator.ts';
import { EndpointDrainer } from '../../src/upstream/endpoint-drainer.ts';

test('visits the sessions of a Service once when many endpoints are due, and ends only the sessions of these', () => {
  const drainer = createDrainer();
  const endpoints = Array.from({ length: 100 }, (_, index) => endpointAt(`10.0.0.${index}`));
  const staying = endpointAt('10.0.1.1');
  const ended: string[] = [];
  const open = [staying, ...endpoints].map((endpoint) => sessionTo(endpoint, ended));
  let passes = 0;
  const sessions = {
    [Symbol.iterator]() {
      passes += 1;
      return open.values();
    },
  };
  for (const [index, endpoint] of endpoints.entries())
    drainer.add(endpoint, { service: 'u', sessions, dueAt: index < 99 ? 10 : 11 });
  drainer.tick(9);
  assert.deepEqual([passes, ended.length], [0, 0]);
  drainer.tick(10);
  assert.deepEqual([passes, ended.length, ended.includes('10.0.1.1')], [1, 99, false]);
  drainer.tick(11);
  assert.deepEqual([passes, ended.length, ended.at(-1)], [2, 100, '10.0.0.99']);
});

test('notifies the sessions of draining endpoints once, in one pass, and no others', async () => {
  const drainer = createDrainer();
  const [a, b, idle, back, staying] = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5'].map(endpointAt);
  assert.ok(a && b && idle && back && staying);
  idle.activeConnections = 0;
  const notified: string[] = [];
  const { promise: isNotified, resolve } = Promise.withResolvers<void>();
  const open = [staying, back, b, a].map((endpoint) => ({
    ...sessionTo(endpoint, []),
    onEndpointUnavailable() {
      notified.push(endpoint.endpoint.address);
      if (endpoint === a) resolve();
    },
  }));
  let passes = 0;
  const sessions = {
    [Symbol.iterator]() {
      passes += 1;
      return open.values();
    },
  };
  for (const endpoint of [a, b, idle, back]) drainer.add(endpoint, { service: 'u', sessions, dueAt: 10 });
  drainer.remove(back);
  await isNotified;
  assert.deepEqual([notified, passes], [['10.0.0.2', '10.0.0.1'], 1]);
});

test('does not notify a session that has moved to another endpoint, or whose endpoint has returned', async () => {
  const drainer = createDrainer();
  const [left, back, other] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map(endpointAt);
  assert.ok(left && back && other);
  const notified: number[] = [];
  const { promise: areAllDue, resolve } = Promise.withResolvers<void>();
  const open: { endpointStats: EndpointStats | undefined }[] = Array.from({ length: 1_000 }, (_, index) => ({
    ...sessionTo(index < 998 ? left : back, []),
    onEndpointUnavailable() {
      notified.push(index);
      if (index === 997) resolve();
      if (index > 0) return;
      for (const session of open.slice(500, 600)) session.endpointStats = other;
      drainer.remove(back);
    },
  }));
  for (const endpoint of [left, back]) drainer.add(endpoint, { service: 'u', sessions: open as Session[], dueAt: 10 });
  await areAllDue;
  await new Promise(setImmediate);
  assert.deepEqual(
    [notified.length, notified.filter((index) => (index >= 500 && index < 600) || index >= 998)],
    [898, []],
  );
});

function createDrainer(): EndpointDrainer {
  const onThrow = (thrown: unknown): void => assert.fail(String(thrown));
  // The clock stands still, so that all sessions of a tick end in one turn.
  return new EndpointDrainer(new SessionTerminator(onThrow, () => 0), onThrow);
}

function endpointAt(address: string): EndpointStats {
  return { ...createEndpointStats({ address, port: 80 }), activeConnections: 1 };
}

function sessionTo(endpointStats: EndpointStats, ended: string[]): Session {
  return {
    endpointStats,
    deadline: 0,
    wheelSlot: 0,
    wheelIndex: -1,
    sessionIndex: -1,
    end: () => void ended.push(endpointStats.endpoint.address),
    onExpired: () => undefined,
    onEndpointUnavailable: () => undefined,
  };
}
