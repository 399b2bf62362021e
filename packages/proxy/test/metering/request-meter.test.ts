import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CODE_CLASSES } from '@weir/model';
import {
  CODE_CLASS_COLUMNS,
  counterRow,
  createCounterBlock,
  ENDPOINT_DURATION,
  histogramColumns,
  REQUEST_DURATION,
} from '../../src/metering/counters.ts';
import { RequestMeter } from '../../src/metering/request-meter.ts';

class MeterInTest {
  readonly row: Float64Array = counterRow([createCounterBlock()], 1);
  readonly meter = new RequestMeter();

  /** The code classes with requests. */
  get classes(): Record<string, number> {
    const counts = CODE_CLASSES.map((codeClass, index) => [codeClass, this.row[CODE_CLASS_COLUMNS[index] as number]]);
    return Object.fromEntries(counts.filter(([, count]) => count !== 0));
  }

  /** The number of durations in each bucket of a histogram, and the sum in microseconds. */
  histogram(first: number): (number | undefined)[] {
    return histogramColumns(first).map((column) => this.row[column]);
  }
}

const EMPTY = Array<number>(13).fill(0);
/** A histogram with one duration. */
const one = (bucket: number, sum: number): number[] => [...EMPTY.with(bucket, 1).slice(0, -1), sum];

test('counts each final status in its class', () => {
  for (const [status, codeClass] of [
    [101, '2xx'],
    [200, '2xx'],
    [299, '2xx'],
    [304, '3xx'],
    [404, '4xx'],
    [503, '5xx'],
    [999, '5xx'],
  ] as const) {
    const { row, meter, ...rest } = relayed(status);
    assert.deepEqual(rest.classes, { [codeClass]: 1 }, String(status));
    meter.abandon();
    assert.deepEqual(row[CODE_CLASS_COLUMNS.at(-1) as number], 0);
  }
});

test('counts the duration of a request and the part of its endpoint', () => {
  const { row, meter, ...rest } = relayed(200);
  assert.deepEqual(rest.endpoint, one(1, 10_000));
  assert.deepEqual(rest.request, EMPTY, 'the answer is not complete');
  meter.complete(10_101);
  meter.complete(20_000);
  meter.abandon();
  const again = new MeterInTest();
  again.row.set(row);
  assert.deepEqual(again.histogram(REQUEST_DURATION), one(5, 101_000));
  assert.deepEqual(again.classes, { '2xx': 1 });
});

test('puts durations above all buckets into the last one', () => {
  const under = new MeterInTest();
  under.meter.begin(under.row, 0);
  under.meter.answer(504, under.row, 10_000.5);
  assert.deepEqual(under.histogram(REQUEST_DURATION), one(11, 10_000_500));
  assert.deepEqual(under.histogram(ENDPOINT_DURATION), EMPTY, 'the proxy has answered itself');
});

test('ends the duration of a request with 101 at the head of the answer', () => {
  const { meter, ...rest } = relayed(101);
  assert.deepEqual(rest.request, one(2, 11_000));
  meter.abandon();
});

test('counts a request without an answer as none, once', () => {
  const under = new MeterInTest();
  under.meter.begin(under.row, 0);
  under.meter.abandon();
  under.meter.abandon();
  assert.deepEqual(under.classes, { none: 1 });
  assert.deepEqual(under.histogram(REQUEST_DURATION), EMPTY);
});

test('counts the answer to a head that is not valid, without a duration', () => {
  const under = new MeterInTest();
  under.meter.answer(400, under.row, 5);
  under.meter.abandon();
  assert.deepEqual(under.classes, { '4xx': 1 });
  assert.deepEqual(under.histogram(REQUEST_DURATION), EMPTY);
});

test('counts an endpoint that answers before it receives anything with a duration of 0', () => {
  const under = new MeterInTest();
  under.meter.begin(under.row, 0);
  under.meter.relayAnswer(200, Number.NaN, 5);
  assert.deepEqual(under.histogram(ENDPOINT_DURATION), one(0, 0));
});

/** A request that was read at 10,000 ms, sent to the endpoint 1 ms later, and answered after further 10 ms. */
function relayed(status: number): {
  row: Float64Array;
  meter: RequestMeter;
  classes: Record<string, number>;
  request: (number | undefined)[];
  endpoint: (number | undefined)[];
} {
  const under = new MeterInTest();
  under.meter.begin(under.row, 10_000);
  under.meter.relayAnswer(status, 10_001, 10_011);
  const { row, meter, classes } = under;
  return {
    row,
    meter,
    classes,
    request: under.histogram(REQUEST_DURATION),
    endpoint: under.histogram(ENDPOINT_DURATION),
  };
}
