import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { costManifests, unexpectedCounts } from '../../src/cost/subjects.ts';

const ports = { tcp: 1001, stream: 1002, http: 1003, datagrams: 1004 };
const backends = { http: 2001, stream: 2002, echo: 2003, datagrams: 2004 };

test('every Service and the tenant have limits, and only the HTTP Service limits requests', () => {
  const text = costManifests(ports, backends);
  assert.equal(text.match(/weir\.dev\/max-connections: "100000"/g)?.length, 4);
  assert.equal(text.match(/weir\.dev\/out-bits-per-second: "400G"/g)?.length, 4);
  assert.equal(text.match(/weir\.dev\/requests-per-second: /g)?.length, 1);
  assert.match(text, /port: 1003, targetPort: 2001, protocol: TCP, appProtocol: http/);
  assert.match(text, /kind: TenantPolicy.*requestsPerSecond: 1000000/s);
});

test('names each counter of the unmetered proxy that is not 0', () => {
  const nothing = { receivedBytes: 0, sentBytes: 0, connections: 0 };
  const ledger = { tcp: nothing, stream: nothing, http: nothing, datagrams: nothing };
  assert.deepEqual(unexpectedCounts(ledger), []);
  assert.deepEqual(unexpectedCounts({ ...ledger, stream: { ...nothing, sentBytes: 7, connections: 1 } }), [
    'sentBytes of "stream" is 7 instead of 0',
    'connections of "stream" is 1 instead of 0',
  ]);
});

describe('unmetered-proxy.ts', () => {
  const proxy = (path: string): string => new URL(`../../../packages/proxy/src/${path}`, import.meta.url).href;

  test('replaces the counters and the limiters, also in worker threads', () => {
    const program = `
      import { isMainThread, Worker } from 'node:worker_threads';
      import { addToCounter } from ${JSON.stringify(proxy('metering/counters.ts'))};
      import { AdmissionController } from ${JSON.stringify(proxy('limits/admission.ts'))};
      import { Shaper } from ${JSON.stringify(proxy('limits/shaper.ts'))};
      const row = new Float64Array(1);
      addToCounter(row, 0, 5);
      const admitted = new AdmissionController().admit(null);
      const { isLimited } = new Shaper().limitersFor(admitted.limiters).in;
      console.log(JSON.stringify([isMainThread, row[0], admitted.constructor.name, isLimited]));
      if (isMainThread) new Worker(new URL(import.meta.url));`;
    assert.deepEqual(runUnmetered(program), [
      [true, 0, 'Object', false],
      [false, 0, 'Object', false],
    ]);
  });

  test('finds every function and member that it replaces', () => {
    const paths = [
      ...['metering/counters.ts', 'metering/request-meter.ts', 'relay/counted-connection.ts'],
      ...['limits/tenant-buffers.ts', 'limits/admission.ts', 'limits/new-flow-budget.ts', 'limits/shaper.ts'],
      'limits/lease-client.ts',
    ];
    const imports = paths.map((path) => `await import(${JSON.stringify(proxy(path))});`);
    assert.deepEqual(runUnmetered(`${imports.join('\n')}\nconsole.log(${paths.length});`), [paths.length]);
  });
});

/** Runs a program under the hooks of the unmetered proxy. Returns the JSON values that the program prints, one on each line. */
function runUnmetered(program: string): unknown[] {
  const hooks = fileURLToPath(new URL('../../src/cost/unmetered-proxy.ts', import.meta.url));
  const source = `data:text/javascript,${encodeURIComponent(program)}`;
  const args = ['--conditions=source', '--import', hooks, '--import', source, '--eval', ''];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return output
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}
