import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { datagramTraffic, wrkTraffic } from '../../src/l4/loads.ts';
import { addTraffic, exactTraffic, ledgerDifferences, trafficBetween } from '../../src/measure/traffic-bounds.ts';

const one = { receivedBytes: 10, sentBytes: 100, connections: 1 };
const two = { receivedBytes: 20, sentBytes: 200, connections: 2 };

describe('the account of what was moved', () => {
  test('a ledger that says the same has no differences', () => {
    assert.deepEqual(ledgerDifferences(two, addTraffic(exactTraffic(one), exactTraffic(one))), []);
  });

  test('a byte too many or too few is a difference, and says how much there should be', () => {
    assert.deepEqual(ledgerDifferences({ ...one, sentBytes: 101 }, exactTraffic(one)), [
      'sentBytes is 101, and 100 were moved',
    ]);
    assert.deepEqual(ledgerDifferences({ ...one, receivedBytes: 9 }, exactTraffic(one)), [
      'receivedBytes is 9, and 10 were moved',
    ]);
  });

  test('where the clients know only bounds, both bounds belong to it', () => {
    const moved = trafficBetween(one, two);
    assert.deepEqual(ledgerDifferences(one, moved), []);
    assert.deepEqual(ledgerDifferences(two, moved), []);
    assert.deepEqual(ledgerDifferences({ ...two, connections: 3 }, moved), ['connections is 3, and 1 to 2 were moved']);
  });

  const report = {
    requests: 1000,
    bytes: 200_000,
    microseconds: 1,
    requestBytes: 40,
    errors: { connect: 0, read: 0, write: 0, status: 0, timeout: 0 },
  };

  test('wrk on kept connections may leave one request of each uncounted', () => {
    assert.deepEqual(wrkTraffic(report, { port: 1, seconds: 1, connections: 64, headers: [] }), {
      receivedBytes: { least: 40_000, most: 40_000 + 64 * 40 },
      sentBytes: { least: 200_000, most: 200_000 + 64 * 200 },
      connections: { least: 64, most: 65 },
    });
  });

  test('wrk with one connection per request has one for each, and may leave some uncounted', () => {
    const options = { port: 1, seconds: 1, connections: 32, headers: ['Connection: close'] };
    assert.deepEqual(wrkTraffic(report, options).connections, { least: 1000, most: 1033 });
  });

  test('a datagram that was lost may have been lost before the proxy or behind it', () => {
    const report = { sent: 100, roundTrips: 98, foreign: 0, lost: 2, ms: 1, messageBytes: 64 };
    assert.deepEqual(datagramTraffic(report, 8), {
      receivedBytes: { least: 98 * 64, most: 100 * 64 },
      sentBytes: { least: 98 * 64, most: 100 * 64 },
      connections: { least: 8, most: 8 },
    });
  });
});
