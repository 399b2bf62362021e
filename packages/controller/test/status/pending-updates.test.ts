// The desired status may change during a write, because a write takes as long as the API server needs.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { ServiceView } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { type RawService, rawService, view } from '../fixtures/views.ts';

interface StatusRequest {
  readonly name: string;
  readonly version: string;
  readonly ips: string;
  respond(error?: KubeApiError): void;
}

/** Creates a status sink whose API server responds to a PATCH of a status when the test calls `respond`. */
function createSlowSink(names: readonly string[]) {
  const requests: StatusRequest[] = [];
  let version = 1;
  const request = async ({ method, path, body }: KubeApiRequest): Promise<Json> => {
    if (path.includes('/events/')) {
      if (method === 'GET') throw new KubeApiError('NOT_FOUND', 'none', { missingName: 'event' });
      return {};
    }
    const { metadata, status } = body as unknown as RawService & {
      status: { loadBalancer?: { ingress?: { ip: string }[] } };
    };
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    version += 1;
    const after = rawOf(metadata.name, String(version), status);
    requests.push({
      name: metadata.name,
      version: metadata.resourceVersion,
      ips: (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join(),
      respond: (error) => (error ? reject(error) : resolve(after)),
    });
    return promise;
  };
  const api = { request };
  const [clock, log] = [new ManualClock(), silentLogger()];
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  for (const name of names) status.observe(name, rawOf(name));
  return { requests, status };
}

function rawOf(name: string, version = '1', status: RawService['status'] = {}): Json {
  const object = rawService(status, { version }) as unknown as RawService;
  return { ...object, metadata: { ...object.metadata, name, uid: name } } as unknown as Json;
}

const viewOf = (name: string, ip: string): ServiceView => view({ uid: name, name, addresses: [ip] });
const never = new AbortController().signal;

describe('the desired status', () => {
  test('is the newest when the write starts, and each Service has one writer at a time', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { requests, status } = createSlowSink(names);
    const setAll = (ip: string): void =>
      status.setDesired({ kind: 'decided', views: names.map((name) => viewOf(name, ip)) });
    setAll('10.0.0.1');
    const writing = status.write(never);
    await turn();
    assert.equal(requests.length, 8, 'the maximum number of concurrent writes');
    setAll('10.0.0.2');
    setAll('10.0.0.3');
    await turn();
    assert.equal(requests.length, 8, 'a Service in progress is written again afterwards');
    for (let at = 0; at < requests.length; at += 1) {
      requests[at]?.respond();
      await turn();
    }
    assert.equal(await writing, 'complete');
    const requestsByName = Map.groupBy(requests, ({ name }) => name);
    const first = names.slice(0, 8);
    for (const name of names) {
      const ips = (requestsByName.get(name) ?? []).map((each) => each.ips);
      assert.deepEqual(ips, first.includes(name) ? ['10.0.0.1', '10.0.0.3'] : ['10.0.0.3'], name);
    }
    for (const name of first) {
      const [, second] = requestsByName.get(name) ?? [];
      assert.notEqual(second?.version, '1', 'with the version of the first write');
    }
  });

  test('is not lost if it changes during a write that fails', async () => {
    const { requests, status } = createSlowSink(['web']);
    status.setDesired({ kind: 'decided', views: [viewOf('web', '10.0.0.1')] });
    const writing = status.write(never);
    await turn();
    status.setDesired({ kind: 'decided', views: [viewOf('web', '10.0.0.2')] });
    requests[0]?.respond(new KubeApiError('AWAY', 'failed', { status: 503 }));
    await assert.rejects(writing, { code: 'AWAY' });
    const again = status.write(never);
    await turn();
    requests[1]?.respond();
    await again;
    assert.deepEqual(
      requests.map(({ ips }) => ips),
      ['10.0.0.1', '10.0.0.2'],
    );
  });

  test('is written by all free writers while a slow write is under way', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { requests, status } = createSlowSink(names);
    const slow = [viewOf('s0', '10.0.0.1')];
    status.setDesired({ kind: 'decided', views: slow });
    const writing = status.write(never);
    await turn();
    assert.equal(requests.length, 1);
    status.setDesired({ kind: 'decided', views: [...slow, ...names.slice(1).map((name) => viewOf(name, '10.0.0.1'))] });
    await turn();
    assert.equal(requests.length, 8, 'seven beside the slow write');
    for (let at = 1; at < requests.length; at += 1) {
      requests[at]?.respond();
      await turn();
    }
    assert.equal(requests.length, names.length);
    requests[0]?.respond();
    assert.equal(await writing, 'complete');
    status.setDesired({ kind: 'decided', views: slow.map(({ name }) => viewOf(name, '10.0.0.2')) });
    await turn();
    assert.equal(requests.length, names.length, 'nothing is written outside of a call of write');
  });

  test('is not written to further Services once the signal aborts', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { requests, status } = createSlowSink(names);
    status.setDesired({ kind: 'decided', views: names.map((name) => viewOf(name, '10.0.0.1')) });
    const term = new AbortController();
    const writing = status.write(term.signal);
    await turn();
    term.abort(new Error('the lead is lost'));
    for (const each of requests) each.respond();
    await assert.rejects(writing, /the lead is lost/);
    assert.equal(requests.length, 8);
  });

  test('is updated at the cost of its change, without reading a thousand other Services', async () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `s${String(index).padStart(4, '0')}`);
    const { requests, status } = createSlowSink(names);
    let reads = 0;
    const counted = (name: string, ip: string): ServiceView =>
      Object.defineProperty(viewOf(name, ip), 'uid', {
        enumerable: true,
        get() {
          reads += 1;
          return name;
        },
      });
    let views = names.map((name) => counted(name, '10.0.0.1'));
    status.setDesired({ kind: 'decided', views });
    const writing = status.write(never);
    await turn();
    for (let at = 0; at < names.length; at += 1) {
      requests[at]?.respond();
      if (requests[at + 1] === undefined) await turn();
    }
    await writing;
    assert.equal(requests.length, names.length);
    for (const at of [0, 500, 999]) {
      reads = 0;
      views = views.map((each, index) => (index === at ? counted(names[at] ?? '', `10.0.1.${at % 250}`) : each));
      status.setDesired({ kind: 'decided', views });
      const next = status.write(never);
      await turn();
      requests.at(-1)?.respond();
      await next;
      assert.ok(reads < 20, `${reads} reads for one change`);
    }
    assert.equal(requests.length, names.length + 3);
  });
});
