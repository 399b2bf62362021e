import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, type HistogramSample, type Metrics, type Sample } from '../../src/index.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';

async function seriesOf(metrics: Metrics, name: string): Promise<string[]> {
  const text = await metrics.render();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

test('renders counters, gauges and histograms', async () => {
  const metrics = createMetrics();
  const flushes = metrics.counter({ name: 'flushes_total', help: 'Flushes.' });
  flushes.add({});
  flushes.add({}, 2);
  metrics.gauge({ name: 'revision', help: 'Revision.', labels: ['fleet'] }).set({ fleet: 'weir' }, 7);
  metrics.histogram({ name: 'seconds', help: 'Time.', buckets: [1, 2] }).observe({}, 1.5);
  const text = await metrics.render();
  assert.match(text, /^# TYPE flushes_total counter\nflushes_total 3$/m);
  assert.match(text, /^revision\{fleet="weir"\} 7$/m);
  assert.match(text, /^seconds_bucket\{le="1"\} 0\nseconds_bucket\{le="2"\} 1\nseconds_bucket\{le="\+Inf"\} 1$/m);
  assert.match(metrics.contentType, /^text\/plain; version=0\.0\.4/);
});

test('renders collected metrics with the series at the time of the scrape', async () => {
  const metrics = createMetrics();
  let samples: Sample<'service'>[] = [{ labels: { service: 'web' }, value: 10 }];
  metrics.collectCounter({ name: 'received_total', help: 'Bytes.', labels: ['service'], collect: () => samples });
  metrics.collectGauge({ name: 'active', help: 'Open.', labels: ['service'], collect: () => samples });
  assert.deepEqual(await seriesOf(metrics, 'received_total'), ['received_total{service="web"} 10']);
  samples = [
    { labels: { service: 'web' }, value: 9_007_199_254_740_991 },
    { labels: { service: 'api' }, value: 1 },
  ];
  const expected = ['received_total{service="web"} 9007199254740991', 'received_total{service="api"} 1'];
  assert.deepEqual(await seriesOf(metrics, 'received_total'), expected);
  samples = [];
  assert.deepEqual(await seriesOf(metrics, 'received_total'), []);
  assert.deepEqual(await seriesOf(metrics, 'active'), []);
});

test('renders a collected histogram with cumulative buckets, adds up equal labels, and drops labels above the cap', async () => {
  const metrics = createMetrics({ maxSeries: 2 });
  const sample = (service: string, counts: readonly number[], sum: number): HistogramSample<'service'> => ({
    labels: { service },
    counts,
    sum,
  });
  metrics.collectHistogram({
    name: 'duration_seconds',
    help: 'Time.',
    labels: ['service'],
    buckets: [0.005, 1],
    collect: () => [
      sample('a', [1, 2, 3], 10),
      sample('b', [0, 0, 0], 0),
      sample('a', [1, 0, 1], 2.5),
      sample('c', [1, 0, 0], 1),
    ],
  });
  const text = await metrics.render();
  assert.match(text, /^# TYPE duration_seconds histogram$/m);
  assert.deepEqual(
    text.split('\n').filter((line) => line.startsWith('duration_seconds')),
    [
      'duration_seconds_bucket{service="a",le="0.005"} 2',
      'duration_seconds_bucket{service="a",le="1"} 4',
      'duration_seconds_bucket{service="a",le="+Inf"} 8',
      'duration_seconds_sum{service="a"} 12.5',
      'duration_seconds_count{service="a"} 8',
      'duration_seconds_bucket{service="b",le="0.005"} 0',
      'duration_seconds_bucket{service="b",le="1"} 0',
      'duration_seconds_bucket{service="b",le="+Inf"} 0',
      'duration_seconds_sum{service="b"} 0',
      'duration_seconds_count{service="b"} 0',
    ],
  );
  assert.match(text, /^weir_metrics_dropped_total\{metric="duration_seconds",reason="cap"\} 1$/m);
});

test('keeps the first series up to the cap and counts dropped updates', async () => {
  const metrics = createMetrics({ maxSeries: 2 });
  const requests = metrics.counter({ name: 'requests_total', help: 'Requests.', labels: ['service'] });
  for (const service of ['a', 'b', 'c', 'c', 'a']) requests.add({ service });
  assert.deepEqual(await seriesOf(metrics, 'requests_total'), [
    'requests_total{service="a"} 2',
    'requests_total{service="b"} 1',
  ]);
  const dropped = 'weir_metrics_dropped_total{metric="requests_total",reason="cap"} 2';
  assert.deepEqual(await seriesOf(metrics, 'weir_metrics_dropped_total'), [dropped]);
});

test('makes room for another series when a series is removed', async () => {
  const metrics = createMetrics({ maxSeries: 1 });
  const open = metrics.gauge({ name: 'open', help: 'Open.', labels: ['service'] });
  open.set({ service: 'a' }, 1);
  open.remove({ service: 'a' });
  open.set({ service: 'b' }, 2);
  assert.deepEqual(await seriesOf(metrics, 'open'), ['open{service="b"} 2']);
});

test('counts dropped series in the same scrape', async () => {
  const metrics = createMetrics({ maxSeries: 1 });
  const samples = ['a', 'b', 'c'].map((service) => ({ labels: { service }, value: 1 }));
  metrics.collectGauge({ name: 'active', help: 'Open.', labels: ['service'], collect: () => samples });
  const dropped = 'weir_metrics_dropped_total{metric="active",reason="cap"} 2';
  assert.deepEqual(await seriesOf(metrics, 'weir_metrics_dropped_total'), [dropped]);
  assert.deepEqual(await seriesOf(metrics, 'active'), ['active{service="a"} 1']);
});

test('renders the other metrics if one source throws, and counts and logs the failure', async () => {
  const lines: string[] = [];
  const log = createLogger({ name: 'x', level: 'warn', destination: { write: (line) => void lines.push(line) } });
  const metrics = createMetrics({ log });
  metrics.gauge({ name: 'good', help: 'Good.' }).set({}, 1);
  function* collect(): Generator<Sample<'service'>> {
    yield { labels: { service: 'a' }, value: 1 };
    throw new Error('worker gone');
  }
  metrics.collectGauge({ name: 'bad', help: 'Bad.', labels: ['service'], collect });
  assert.deepEqual(await seriesOf(metrics, 'bad'), []);
  assert.deepEqual(await seriesOf(metrics, 'good'), ['good 1']);
  assert.match(await metrics.render(), /weir_metrics_dropped_total\{metric="bad",reason="error"\} 3/);
  assert.match(lines[0] ?? '', /worker gone/);
});

test('renders process metrics only on request, in independent registries', async () => {
  const withProcess = createMetrics({ processMetrics: 'on' });
  createMetrics({ processMetrics: 'on' });
  assert.match(await withProcess.render(), /^process_resident_memory_bytes \d+$/m);
  assert.doesNotMatch(await createMetrics().render(), /process_resident_memory_bytes/);
});

test('renders the given count of open descriptors once', async () => {
  const metrics = createMetrics({ processMetrics: 'on', openDescriptors: () => 123_456 });
  assert.deepEqual(await seriesOf(metrics, 'process_open_fds'), ['process_open_fds 123456']);
  assert.equal((await metrics.render()).split('# TYPE process_open_fds gauge').length, 2);
});

test('escapes label values', async () => {
  const metrics = createMetrics();
  metrics.gauge({ name: 'g', help: 'G.', labels: ['l'] }).set({ l: 'a"b\nc\\' }, 1);
  assert.deepEqual(await seriesOf(metrics, 'g'), ['g{l="a\\"b\\nc\\\\"} 1']);
});

test('yields to other work during a large scrape and shares the scrape with concurrent readers', async () => {
  const metrics = createMetrics({ maxSeries: 200_000 });
  const samples = Array.from({ length: 150_000 }, (_, index) => ({
    labels: { service: `web-${index}` },
    value: index,
  }));
  metrics.collectGauge({ name: 'active', help: 'Open.', labels: ['service'], collect: () => samples });
  let runs = 0;
  let isOver = false;
  const otherWork = (): void => {
    runs += 1;
    if (!isOver) setImmediate(otherWork);
  };
  setImmediate(otherWork);
  const [first, second] = await Promise.all([metrics.render(), metrics.render()]);
  isOver = true;
  assert.equal(first, second);
  assert.equal(first.split('\n').filter((line) => line.startsWith('active{')).length, 150_000);
  assert.ok(runs > 3, `other work ran ${runs} times`);
});

test('merges samples of one series: a counter adds them, a gauge takes the last', async () => {
  const metrics = createMetrics();
  const collect = () => [1, 2].map((value) => ({ labels: { service: 'web' }, value }));
  metrics.collectCounter({ name: 'received_total', help: 'Bytes.', labels: ['service'], collect });
  metrics.collectGauge({ name: 'active', help: 'Open.', labels: ['service'], collect });
  assert.deepEqual(await seriesOf(metrics, 'received_total'), ['received_total{service="web"} 3']);
  assert.deepEqual(await seriesOf(metrics, 'active'), ['active{service="web"} 2']);
  assert.throws(() => metrics.gauge({ name: 'active', help: 'Open.' }), /active/);
});

test('escapes the help text and label values of collected metrics', async () => {
  const metrics = createMetrics();
  const collect = () => [{ labels: { l: 'a"b\nc\\' }, value: Number.POSITIVE_INFINITY }];
  metrics.collectGauge({ name: 'g', help: 'One\nand \\.', labels: ['l'], collect });
  assert.deepEqual(await seriesOf(metrics, 'g'), ['g{l="a\\"b\\nc\\\\"} +Inf']);
  assert.match(await metrics.render(), /^# HELP g One\\nand \\\\\.$/m);
});
