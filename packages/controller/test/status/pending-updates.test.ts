// What is to be told may change while it is being told: writing takes as long as the API server likes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { ServiceView } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { type RawService, rawService, view } from '../fixtures/views.ts';

interface Asked {
  readonly name: string;
  readonly version: string;
  readonly ips: string;
  answer(error?: KubeApiError): void;
}

/** An API server that answers a PATCH of a status when the test says so. */
function slowSink(names: readonly string[]) {
  const asked: Asked[] = [];
  let version = 1;
  const request = async ({ method, path, body }: ApiRequest): Promise<Json> => {
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
    asked.push({
      name: metadata.name,
      version: metadata.resourceVersion,
      ips: (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join(),
      answer: (error) => (error ? reject(error) : resolve(after)),
    });
    return promise;
  };
  const api = { request };
  const [clock, log] = [new ManualClock(), silentLogger()];
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  for (const name of names) status.observe(name, rawOf(name));
  return { asked, status };
}

function rawOf(name: string, version = '1', status: RawService['status'] = {}): Json {
  const object = rawService(status, { version }) as unknown as RawService;
  return { ...object, metadata: { ...object.metadata, name, uid: name } } as unknown as Json;
}

const viewOf = (name: string, ip: string): ServiceView => view({ uid: name, name, addresses: [ip] });
const never = new AbortController().signal;

describe('what is to be told', () => {
  test('is the newest when its turn comes, and is told by one writer at a time', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { asked, status } = slowSink(names);
    const want = (ip: string): void =>
      status.setDesired({ kind: 'decided', views: names.map((name) => viewOf(name, ip)) });
    want('10.0.0.1');
    const writing = status.write(never);
    await turn();
    assert.equal(asked.length, 8, 'so many at once');
    want('10.0.0.2');
    want('10.0.0.3');
    await turn();
    assert.equal(asked.length, 8, 'who is being told is told the next when that is over');
    for (let at = 0; at < asked.length; at += 1) {
      asked[at]?.answer();
      await turn();
    }
    assert.equal(await writing, 'complete');
    const told = Map.groupBy(asked, ({ name }) => name);
    const first = names.slice(0, 8);
    for (const name of names) {
      const ips = (told.get(name) ?? []).map((each) => each.ips);
      assert.deepEqual(ips, first.includes(name) ? ['10.0.0.1', '10.0.0.3'] : ['10.0.0.3'], name);
    }
    for (const name of first) {
      const [, second] = told.get(name) ?? [];
      assert.notEqual(second?.version, '1', 'on top of what was written before');
    }
  });

  test('is not lost when it changes while the one before fails', async () => {
    const { asked, status } = slowSink(['web']);
    status.setDesired({ kind: 'decided', views: [viewOf('web', '10.0.0.1')] });
    const writing = status.write(never);
    await turn();
    status.setDesired({ kind: 'decided', views: [viewOf('web', '10.0.0.2')] });
    asked[0]?.answer(new KubeApiError('AWAY', 'failed', { status: 500 }));
    await assert.rejects(writing, { code: 'AWAY' });
    const again = status.write(never);
    await turn();
    asked[1]?.answer();
    await again;
    assert.deepEqual(
      asked.map(({ ips }) => ips),
      ['10.0.0.1', '10.0.0.2'],
    );
  });

  test('waits for no other that takes its time, and for no fewer writers than there are', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { asked, status } = slowSink(names);
    const slow = [viewOf('s0', '10.0.0.1')];
    status.setDesired({ kind: 'decided', views: slow });
    const writing = status.write(never);
    await turn();
    assert.equal(asked.length, 1);
    status.setDesired({ kind: 'decided', views: [...slow, ...names.slice(1).map((name) => viewOf(name, '10.0.0.1'))] });
    await turn();
    assert.equal(asked.length, 8, 'beside the one that takes its time');
    for (let at = 1; at < asked.length; at += 1) {
      asked[at]?.answer();
      await turn();
    }
    assert.equal(asked.length, names.length);
    asked[0]?.answer();
    assert.equal(await writing, 'complete');
    status.setDesired({ kind: 'decided', views: slow.map(({ name }) => viewOf(name, '10.0.0.2')) });
    await turn();
    assert.equal(asked.length, names.length, 'nothing is written but while somebody asks for it');
  });

  test('stops with the signal: what is under way ends, and no other is begun', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const { asked, status } = slowSink(names);
    status.setDesired({ kind: 'decided', views: names.map((name) => viewOf(name, '10.0.0.1')) });
    const lead = new AbortController();
    const writing = status.write(lead.signal);
    await turn();
    lead.abort(new Error('the lead is lost'));
    for (const each of asked) each.answer();
    await assert.rejects(writing, /the lead is lost/);
    assert.equal(asked.length, 8);
  });

  test('costs a look at what changed: a thousand others are not even asked for their names', async () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `s${String(index).padStart(4, '0')}`);
    const { asked, status } = slowSink(names);
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
      asked[at]?.answer();
      if (asked[at + 1] === undefined) await turn();
    }
    await writing;
    assert.equal(asked.length, names.length);
    for (const at of [0, 500, 999]) {
      reads = 0;
      views = views.map((each, index) => (index === at ? counted(names[at] ?? '', `10.0.1.${at % 250}`) : each));
      status.setDesired({ kind: 'decided', views });
      const next = status.write(never);
      await turn();
      asked.at(-1)?.answer();
      await next;
      assert.ok(reads < 20, `${reads} reads for one change`);
    }
    assert.equal(asked.length, names.length + 3);
  });
});
