import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { echoServer } from '@weir/testkit';
import type { Reading } from '../../src/comparison/comparison-result.ts';
import { findHighestRate, latencyReadings } from '../../src/comparison/measure-latency.ts';
import { runOpenLoop } from '../../src/load/generators.ts';
import { LatencyHistogram } from '../../src/measure/statistics.ts';

describe('LatencyHistogram', () => {
  test('returns the smallest latency in µs that the share does not exceed', () => {
    const latencies = new LatencyHistogram();
    for (let ms = 1; ms <= 100; ms++) latencies.add(ms);
    assert.equal(latencies.percentile(0.5), 50_000);
    assert.equal(latencies.percentile(0.99), 99_000);
    assert.equal(latencies.count, 100);
  });

  test('counts a latency above one second as one second, and has no percentile without latencies', () => {
    const latencies = new LatencyHistogram();
    assert.equal(latencies.percentile(0.5), Number.NaN);
    latencies.add(90_000);
    assert.equal(latencies.percentile(0.5), 1_000_000);
  });
});

describe('findHighestRate', () => {
  const upTo =
    (limit: number, tried: number[] = []) =>
    (rate: number) => {
      tried.push(rate);
      return Promise.resolve(rate <= limit);
    };

  test('finds the rate to a sixteenth of the first failed rate', async () => {
    const rate = await findHighestRate(upTo(21_000), { from: 1_000, upTo: 1_000_000 });
    assert.ok(rate <= 21_000 && rate > 21_000 - 1_000, String(rate));
  });

  test('returns the lowest rate if no other rate is sustained, and never tries a rate above the maximum', async () => {
    assert.equal(await findHighestRate(upTo(500), { from: 1_000, upTo: 8_000 }), 1_000);
    const tried: number[] = [];
    assert.equal(await findHighestRate(upTo(Number.POSITIVE_INFINITY, tried), { from: 1_000, upTo: 8_000 }), 8_000);
    assert.deepEqual(tried, [2_000, 4_000, 8_000]);
  });
});

const latencyReading = (p50: number, p99: number): { p50: Reading; p99: Reading } => {
  const reading = { userMs: 1, systemMs: 1 };
  return { p50: { ...reading, figure: p50 }, p99: { ...reading, figure: p99 } };
};

test('subtracts the echo of the same round from the median, but not from the 99th percentile', () => {
  const readings = new Map([
    ['weir', [latencyReading(50, 900), latencyReading(70, 800)]],
    ['direct', [latencyReading(20, 5_000), latencyReading(30, 100)]],
  ] as const);
  const [median, added, p99] = latencyReadings('latency', readings);
  const figures = (result: typeof median): unknown => result?.readings.weir?.map(({ figure }) => figure);
  assert.deepEqual(
    [figures(median), figures(added), figures(p99)],
    [
      [50, 70],
      [30, 40],
      [900, 800],
    ],
  );
  assert.deepEqual([median?.targets, added?.targets, p99?.targets], [{}, { haproxy: 1.1 }, { haproxy: 1.5 }]);
  assert.equal(added?.readings.direct, undefined);
});

test('sends and counts messages at the requested rate', async () => {
  await using echo = await echoServer();
  const report = await runOpenLoop({ port: echo.port, rate: 500, seconds: 1, connections: 4 });
  assert.ok(report.kind === 'measured');
  assert.equal(report.messages, 650);
  assert.ok(report.counted >= 499 && report.counted <= 501, `${report.counted} counted`);
  assert.equal(echo.received, 650 * 64);
  assert.ok(report.ms >= 1_290 && report.p50 > 0 && report.p99 >= report.p50);
});

test('fails if an echoed byte differs', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => socket.write(bytes.fill(7, 20, 21)));
  });
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  try {
    const run = runOpenLoop({ port, rate: 100, seconds: 1, connections: 1 });
    await assert.rejects(run, /byte \d+ of connection 0 differs from the sent byte/);
  } finally {
    server.close();
  }
});
