import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALLOWED_GROWTH, findingsFor } from '../../src/soak/checks.ts';
import { type ClientTotals, emptyClientTotals } from '../../src/soak/client-totals.ts';
import { emptyDatagramTotals } from '../../src/soak/load-generator.ts';
import type { MemoryKind } from '../../src/soak/process-resources.ts';
import type { ServiceView } from '../../src/soak/proxy-view.ts';
import { SERVICE_NAMES, type ServiceName } from '../../src/soak/services.ts';
import type { SoakResult } from '../../src/soak/soak-result.ts';

/** Returns a result without findings. Each Service had two connections: one was completed, and one was reset by its client. */
function goodReading(): SoakResult {
  const rest = {
    descriptors: { tcp: 1, file: 11 },
    residentKiB: { malloc: 40_000, 'V8 and large buffers': 70_000, 'machine code': 7_000, stacks: 400, files: 62_600 },
    malloc: { used: 30_000_000, free: 40_000_000 },
    heapBytes: { main: 40_000_000, workers: 20_000_000 },
  };
  const count = (name: ServiceName): ServiceView => ({
    name,
    active: 0,
    counters: { receivedBytes: 150, sentBytes: 120, connections: 2 },
    outcomes: { completed: 1, 'reset-by-client': 1 },
  });
  const totals: ClientTotals = {
    ...emptyClientTotals(),
    established: 2,
    clientOutcomes: { ...emptyClientTotals().clientOutcomes, clean: 1, aborted: 1 },
    cleanSent: 100,
    cleanRead: 100,
    otherSent: 60,
    otherRead: 15,
  };
  const datagramTotals = { ...emptyDatagramTotals(), sockets: 2, answeredSockets: 2, sentBytes: 150, readBytes: 120 };
  const endpoint = { connections: 2, open: 0, read: 150, written: 130 };
  return {
    before: rest,
    after: rest,
    view: { workers: 2, connections: 0, services: SERVICE_NAMES.map(count) },
    ledger: of(() => ({ receivedBytes: 150, sentBytes: 120, connections: 2 })),
    clientTotals: of((name) => (name === 'orderly' ? { ...totals, otherSent: 50 } : totals)),
    datagramTotals,
    endpointTotals: of(() => endpoint),
    workers: 2,
    endedWorkers: 0,
    proxyLog: '',
    exit: { code: 0, signal: null },
  };
}

describe('findingsFor', () => {
  test('returns nothing for a good result', () => {
    assert.deepEqual(findingsFor(goodReading()), []);
  });

  const leaks: readonly (readonly [string, (good: SoakResult) => SoakResult, RegExp])[] = [
    [
      'a connection that is still active',
      (good) => withCount(good, { active: 1 }, { connections: 1 }),
      /^1 connections are still active$/,
    ],
    [
      'a Service with a connection that is still active',
      (good) => withCount(good, { active: 1 }),
      /^orderly: 1 connections are still active$/,
    ],
    [
      'a connection without outcome',
      (good) => withCount(good, { outcomes: { completed: 1 } }),
      /^orderly: the proxy counted 2 connections, but its outcomes allow only 1 to 1$/,
    ],
    [
      'a connection with two outcomes',
      (good) => withCount(good, { outcomes: { completed: 1, 'reset-by-client': 1, 'rate-limit': 1 } }),
      /^orderly: the proxy counted 3 outcomes, but clients connected 2 times$/,
    ],
    [
      'a failed connection',
      (good) => withCount(good, { outcomes: { completed: 1, internal: 1 } }),
      /^orderly: 1 connections have the outcome "internal", although no worker was ended$/,
    ],
    [
      'a clean connection that the proxy did not complete',
      (good) => withCount(good, { outcomes: { 'reset-by-client': 2 } }),
      /^orderly: the proxy counted 0 connections as completed, but 1 clients saw FIN both ways$/,
    ],
    [
      'a UDP flow that stays',
      (good) => withCount(good, { active: 1 }, {}, 'datagrams'),
      /^datagrams: 1 flows are still/,
    ],
    [
      'a UDP flow without outcome',
      (good) => withCount(good, { outcomes: { 'idle-timeout': 1 } }, {}, 'datagrams'),
      /^datagrams: the proxy counted 2 flows, but 1 outcomes$/,
    ],
    [
      'a descriptor of a kind too many',
      (good) => ({
        ...good,
        after: {
          ...good.after,
          descriptors: { tcp: 1, file: 11, 'socket without peer': ALLOWED_GROWTH.descriptors + 1 },
        },
      }),
      /^3 descriptors of kind "socket without peer" instead of 0$/,
    ],
    [
      'memory allocated by native code and never freed',
      (good) => {
        const used = good.before.malloc.used + ALLOWED_GROWTH.mallocBytes + 1;
        return { ...good, after: { ...good.after, malloc: { ...good.before.malloc, used } } };
      },
      /^memory in use by malloc went from 28\.6 MiB to 30\.6 MiB$/,
    ],
    [
      'memory that is mapped past malloc and never given back',
      (good) => withResident(good, 'V8 and large buffers', ALLOWED_GROWTH.heldBytes / 1024 + 1),
      /^memory in use went from 165\.3 MiB to 177\.3 MiB$/,
    ],
    [
      'malloc that keeps ever more',
      (good) => withResident(good, 'malloc', ALLOWED_GROWTH.residentBytes / 1024 + 1),
      /^resident memory went from 175\.8 MiB to 199\.8 MiB$/,
    ],
    [
      'a heap that grows',
      (good) => {
        const workers = good.before.heapBytes.workers + ALLOWED_GROWTH.heapBytes + 1;
        return { ...good, after: { ...good.after, heapBytes: { ...good.before.heapBytes, workers } } };
      },
      /^the heap of workers went from 19\.1 MiB to 23\.1 MiB$/,
    ],
    [
      'a byte received too many',
      (good) => withBytes(good, 'receivedBytes', 151),
      /^orderly: the ledger has 151 bytes received instead of 150$/,
    ],
    [
      'a byte received too few',
      (good) => withBytes(good, 'receivedBytes', 149),
      /^orderly: the ledger has 149 bytes received instead of 150$/,
    ],
    [
      'more bytes sent than endpoints wrote',
      (good) => withBytes(good, 'sentBytes', 131),
      /^orderly: the ledger has 131 bytes sent instead of 115 to 130$/,
    ],
    [
      'fewer bytes sent than clients read',
      (good) => withBytes(good, 'sentBytes', 114),
      /^orderly: the ledger has 114 bytes sent instead of 115 to 130$/,
    ],
    [
      'a ledger that differs from the counters',
      (good) => ({
        ...good,
        ledger: { ...good.ledger, orderly: { receivedBytes: 150, sentBytes: 119, connections: 2 } },
      }),
      /^orderly: sentBytes is 119 in the ledger, but the proxy counted 120$/,
    ],
    [
      'a Service that is missing in the ledger',
      (good) => ({ ...good, ledger: {} }),
      /^orderly: the ledger has no entry$/,
    ],
    [
      'a client that waits for ever',
      (good) => withTotals(good, { clientOutcomes: { ...good.clientTotals.orderly.clientOutcomes, 'timed-out': 1 } }),
      /^orderly: 1 clients were left waiting$/,
    ],
    [
      'a wrong byte',
      (good) => withTotals(good, { clientOutcomes: { ...good.clientTotals.orderly.clientOutcomes, corrupted: 1 } }),
      /^orderly: 1 clients received a wrong byte$/,
    ],
    ['a Service without clients', (good) => withTotals(good, { established: 0 }), /^orderly: no client connected$/],
    [
      'a worker that ended by itself',
      (good) => ({ ...good, proxyLog: '{"msg":"worker ended; starting another one"}\n' }),
      /^1 workers ended instead of 0$/,
    ],
    [
      'a worker that was not replaced',
      (good) => ({ ...good, view: { ...good.view, workers: 1 } }),
      /^1 of 2 workers are up$/,
    ],
    [
      'an error in the log of the proxy',
      (good) => ({ ...good, proxyLog: '{"msg":"a connection ended because of a bug"}\n' }),
      /^1 connections failed in the proxy/,
    ],
    [
      'a crash at the end',
      (good) => ({ ...good, exit: { code: null, signal: 'SIGSEGV' } }),
      /^the proxy ended with SIGSEGV$/,
    ],
  ];
  for (const [what, spoil, finding] of leaks) {
    test(`finds ${what}`, () => {
      const findings = findingsFor(spoil(goodReading()));
      assert.ok(
        findings.some((text) => finding.test(text)),
        `found: ${findings.join('; ') || 'nothing'}`,
      );
    });
  }

  test('ignores free memory of malloc', () => {
    const good = goodReading();
    const reading = withResident(good, 'malloc', 20_000);
    const malloc = { ...good.before.malloc, free: good.before.malloc.free + 20_480_000 };
    assert.deepEqual(findingsFor({ ...reading, after: { ...reading.after, malloc } }), []);
  });

  test('allows connections that were reset while listeners closed to be missing', () => {
    const reading = withTotals(goodReading(), { established: 4, possiblyUnseen: 2 });
    assert.deepEqual(findingsFor(reading), []);
    assert.deepEqual(findingsFor(withTotals(reading, { established: 5 })), [
      'orderly: the proxy counted 2 outcomes, but clients connected 3 to 5 times',
    ]);
  });
});

function of<T>(value: (name: ServiceName) => T): Record<ServiceName, T> {
  return Object.fromEntries(SERVICE_NAMES.map((name) => [name, value(name)])) as Record<ServiceName, T>;
}

function withCount(
  reading: SoakResult,
  change: Partial<ServiceView>,
  view: { connections?: number } = {},
  of: ServiceName = 'orderly',
): SoakResult {
  const services = reading.view.services.map((count) => (count.name === of ? { ...count, ...change } : count));
  return { ...reading, view: { ...reading.view, ...view, services } };
}

function withResident(reading: SoakResult, kind: MemoryKind, grownKiB: number): SoakResult {
  const { residentKiB } = reading.before;
  return {
    ...reading,
    after: { ...reading.after, residentKiB: { ...residentKiB, [kind]: residentKiB[kind] + grownKiB } },
  };
}

/** Returns the result with another number of bytes in the counters of the proxy and in the ledger. */
function withBytes(reading: SoakResult, what: 'receivedBytes' | 'sentBytes', bytes: number): SoakResult {
  const counters = { receivedBytes: 150, sentBytes: 120, connections: 2, [what]: bytes };
  return { ...withCount(reading, { counters }), ledger: { ...reading.ledger, orderly: counters } };
}

function withTotals(reading: SoakResult, change: Partial<ClientTotals>): SoakResult {
  return {
    ...reading,
    clientTotals: { ...reading.clientTotals, orderly: { ...reading.clientTotals.orderly, ...change } },
  };
}
