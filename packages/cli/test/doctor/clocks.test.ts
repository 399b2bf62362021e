import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minSkewMs } from '../../src/doctor/checks/clocks.ts';
import { findingFor, heartbeat, heartbeats, NOW, redis, server } from '../fixtures/doctor-facts.ts';

test('minSkewMs returns the smallest skew that explains a reading', () => {
  const askedAt = 1_000;
  const answeredAt = 1_200;
  const skews = [
    { from: 900, to: 1_100 },
    { from: 1_200, to: 1_300 },
    { from: 5_000, to: 6_000 },
    { from: 0, to: 400 },
  ].map((reading) => minSkewMs({ ...reading, askedAt, answeredAt }));
  assert.deepEqual(skews, [0, 0, 3_800, -600]);
});

test('ApiServerClock tolerates the resolution of the Date header, warns from 2 s and fails from 60 s', () => {
  const findingAt = (ahead: number) => findingFor('ApiServerClock', { server: server('v1.36.0', NOW + ahead) });
  assert.deepEqual(
    [-2_500, 0, 1_900, -30_000, 30_000, 120_000].map((ahead) => findingAt(ahead).severity),
    ['ok', 'ok', 'ok', 'warning', 'warning', 'error'],
  );
  assert.match(findingAt(30_000).message, /the API server is 30 s ahead; .*NTP/);
  assert.match(findingAt(-5_000).message, /the API server is 4\.0 s behind/);
});

test('ApiServerClock reports not checked without a Date header', () => {
  const { severity, message } = findingFor('ApiServerClock', { server: server('v1.36.0', null) });
  assert.deepEqual([severity, message], ['warning', 'not checked: the response of the API server has no Date header']);
});

test('RedisClock detects a skew with a resolution of milliseconds', () => {
  assert.equal(findingFor('RedisClock', { redis: redis({ now: NOW + 1_900 }) }).severity, 'ok');
  assert.match(findingFor('RedisClock', { redis: redis({ now: NOW - 12_345 }) }).message, /Redis is 12 s behind/);
});

test('ProxyClocks accepts heartbeats up to 3 s old and names nodes with skew', () => {
  const fine = heartbeats(heartbeat('edge-1', { sentAt: NOW - 2_900 }), heartbeat('edge-2'));
  assert.equal(findingFor('ProxyClocks', { heartbeats: fine }).severity, 'ok');
  const off = heartbeats(heartbeat('edge-1', { sentAt: NOW - 9_000 }), heartbeat('edge-2', { sentAt: NOW + 90_000 }));
  const { severity, message } = findingFor('ProxyClocks', { heartbeats: off });
  assert.equal(severity, 'error');
  assert.match(message, /edge-1 is 6\.0 s behind, edge-2 is 90 s ahead/);
});

test('ProxyClocks checks only the start time of a proxy that does not report its time', () => {
  const { sentAt: _untold, ...old } = heartbeat('edge-1');
  const unknown = findingFor('ProxyClocks', { heartbeats: heartbeats(old) });
  assert.equal(unknown.severity, 'warning');
  assert.match(unknown.message, /^not checked: the proxies on edge-1/);
  const ahead = findingFor('ProxyClocks', { heartbeats: heartbeats({ ...old, startedAt: NOW + 10_000 }) });
  assert.match(ahead.message, /edge-1 is 10 s ahead/);
});
