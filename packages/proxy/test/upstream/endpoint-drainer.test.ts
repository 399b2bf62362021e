import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEndpointStats, type EndpointStats } from '@weir/model';
import type { Session } from '../../src/relay/session.ts';
import { SessionTerminator } from '../../src/relay/session-terminator.ts';
import { EndpointDrainer } from '../../src/upstream/endpoint-drainer.ts';

test('when many endpoints are due, what is open of their Service is gone through once, and only theirs is ended', () => {
  const departures = departuresOf();
  const loads = Array.from({ length: 100 }, (_, index) => loadAt(`10.0.0.${index}`));
  const staying = loadAt('10.0.1.1');
  const ended: string[] = [];
  const open = [staying, ...loads].map((load) => memberAt(load, ended));
  let passes = 0;
  const sessions = {
    [Symbol.iterator]() {
      passes += 1;
      return open.values();
    },
  };
  for (const [index, load] of loads.entries())
    departures.add(load, { service: 'u', sessions, dueAt: index < 99 ? 10 : 11 });
  departures.tick(9);
  assert.deepEqual([passes, ended.length], [0, 0]);
  departures.tick(10);
  assert.deepEqual([passes, ended.length, ended.includes('10.0.1.1')], [1, 99, false]);
  departures.tick(11);
  assert.deepEqual([passes, ended.length, ended.at(-1)], [2, 100, '10.0.0.99']);
});

test('who goes to an endpoint that left hears of it once, all of them in one pass, others do not', async () => {
  const departures = departuresOf();
  const [a, b, idle, back, staying] = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5'].map(loadAt);
  assert.ok(a && b && idle && back && staying);
  idle.activeConnections = 0;
  const told: string[] = [];
  const { promise: isTold, resolve } = Promise.withResolvers<void>();
  const open = [staying, back, b, a].map((load) => ({
    ...memberAt(load, []),
    onEndpointUnavailable() {
      told.push(load.endpoint.address);
      if (load === a) resolve();
    },
  }));
  let passes = 0;
  const sessions = {
    [Symbol.iterator]() {
      passes += 1;
      return open.values();
    },
  };
  for (const load of [a, b, idle, back]) departures.add(load, { service: 'u', sessions, dueAt: 10 });
  departures.remove(back);
  await isTold;
  assert.deepEqual([told, passes], [['10.0.0.2', '10.0.0.1'], 1]);
});

test('who has gone on to another endpoint by itself before its turn came, or whose endpoint came back, hears nothing', async () => {
  const departures = departuresOf();
  const [left, back, other] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map(loadAt);
  assert.ok(left && back && other);
  const told: number[] = [];
  const { promise: areAllDue, resolve } = Promise.withResolvers<void>();
  const open: { endpointStats: EndpointStats | undefined }[] = Array.from({ length: 1_000 }, (_, index) => ({
    ...memberAt(index < 998 ? left : back, []),
    onEndpointUnavailable() {
      told.push(index);
      if (index === 997) resolve();
      if (index > 0) return;
      for (const member of open.slice(500, 600)) member.endpointStats = other;
      departures.remove(back);
    },
  }));
  for (const load of [left, back]) departures.add(load, { service: 'u', sessions: open as Session[], dueAt: 10 });
  await areAllDue;
  await new Promise(setImmediate);
  assert.deepEqual([told.length, told.filter((index) => (index >= 500 && index < 600) || index >= 998)], [898, []]);
});

function departuresOf(): EndpointDrainer {
  const onThrow = (thrown: unknown): void => assert.fail(String(thrown));
  return new EndpointDrainer(new SessionTerminator(onThrow), onThrow);
}

function loadAt(address: string): EndpointStats {
  return { ...createEndpointStats({ address, port: 80 }), activeConnections: 1 };
}

function memberAt(endpointStats: EndpointStats, ended: string[]): Session {
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
