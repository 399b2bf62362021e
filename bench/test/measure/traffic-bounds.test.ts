import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { wrkTraffic } from '../../src/comparison/load.ts';
import { datagramTraffic } from '../../src/l4/loads.ts';
import { addTraffic, exactTraffic, ledgerDifferences, trafficBetween } from '../../src/measure/traffic-bounds.ts';

const one = { receivedBytes: 10, sentBytes: 100, connections: 1 };
const two = { receivedBytes: 20, sentBytes: 200, connections: 2 };

describe('traffic bounds', () => {
  test('returns no differences for an equal ledger', () => {
    assert.deepEqual(ledgerDifferences(two, addTraffic(exactTraffic(one), exactTraffic(one))), []);
  });

  test('reports a byte too many or too few, with the expected number', () => {
    assert.deepEqual(ledgerDifferences({ ...one, sentBytes: 101 }, exactTraffic(one)), [
      'sentBytes is 101 instead of 100',
    ]);
    assert.deepEqual(ledgerDifferences({ ...one, receivedBytes: 9 }, exactTraffic(one)), [
      'receivedBytes is 9 instead of 10',
    ]);
  });

  test('accepts both bounds', () => {
    const bounds = trafficBetween(one, two);
    assert.deepEqual(ledgerDifferences(one, bounds), []);
    assert.deepEqual(ledgerDifferences(two, bounds), []);
    assert.deepEqual(ledgerDifferences({ ...two, connections: 3 }, bounds), ['connections is 3 instead of 1 to 2']);
  });

  const report = {
    requests: 1000,
    bytes: 200_000,
    microseconds: 1,
    requestBytes: 40,
    errors: { connect: 0, read: 0, write: 0, status: 0, timeout: 0 },
  };

  test('allows one uncounted request on each keep-alive connection of wrk', () => {
    assert.deepEqual(wrkTraffic(report, { connections: 64, headers: [] }), {
      receivedBytes: { min: 40_000, max: 40_000 + 64 * 40 },
      sentBytes: { min: 200_000, max: 200_000 + 64 * 200 },
      connections: { min: 64, max: 65 },
    });
  });

  test('allows uncounted connections of wrk with one connection per request', () => {
    const options = { connections: 32, headers: ['Connection: close'] };
    assert.deepEqual(wrkTraffic(report, options).connections, { min: 1000, max: 1033 });
  });

  test('allows a lost datagram to be counted or not', () => {
    const report = { sent: 100, roundTrips: 98, corrupted: 0, lost: 2, ms: 1, messageBytes: 64 };
    assert.deepEqual(datagramTraffic(report, 8), {
      receivedBytes: { min: 98 * 64, max: 100 * 64 },
      sentBytes: { min: 98 * 64, max: 100 * 64 },
      connections: { min: 8, max: 8 },
    });
  });
});
