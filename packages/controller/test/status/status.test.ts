import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition, ServiceView } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { ApiError } from '../../src/kubernetes/api-error.ts';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { newsFor } from '../../src/status/service-event.ts';
import { serviceFactsFor } from '../../src/status/service-facts.ts';
import { isSaid, statusFor } from '../../src/status/service-status.ts';
import { withExhausted } from '../../src/status/views.ts';

const accepted: Condition = { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'accepted' };
const programmed: Condition = { type: 'Programmed', status: 'True', reason: 'Programmed', message: 'served' };
const refused: Condition = { type: 'Accepted', status: 'False', reason: 'QuotaExceeded', message: '2 of 2 in use' };

function view(change: Partial<ServiceView> = {}): ServiceView {
  const port = {
    port: 80,
    protocol: 'TCP',
    node: 'a',
    address: '10.0.0.1',
    bound: true,
    listening: true,
    error: null,
  } as const;
  return {
    uid: 'u1',
    namespace: 'shop',
    name: 'web',
    tenant: 'shop',
    state: 'Programmed',
    reason: 'Programmed',
    message: '',
    addresses: ['10.0.0.1'],
    ports: [port],
    portErrors: [],
    endpoints: { ready: 1, total: 1 },
    conditions: [accepted, programmed],
    ...change,
  };
}

interface Raw {
  readonly metadata: {
    uid: string;
    namespace: string;
    name: string;
    resourceVersion: string;
    deletionTimestamp?: string;
  };
  readonly spec: { type: string };
  readonly status: { loadBalancer?: object; conditions?: readonly object[] };
}

function raw(status: Raw['status'] = {}, change: { version?: string; type?: string; uid?: string } = {}): Json {
  const { version = '1', type = 'LoadBalancer', uid = 'u1' } = change;
  const object: Raw = {
    metadata: { uid, namespace: 'shop', name: 'web', resourceVersion: version },
    spec: { type },
    status,
  };
  return object as unknown as Json;
}

const NOW = Date.UTC(2026, 6, 1);
const factsOf = (object: Json) => serviceFactsFor(object) ?? assert.fail('no facts');

describe('the status of a Service', () => {
  test('carries ipMode and every port, with the reason of those that are not served', () => {
    const portErrors = [{ port: 53, protocol: 'SCTP', reason: 'UnsupportedProtocol', message: '' }] as const;
    const status = statusFor(view({ portErrors }), factsOf(raw()), NOW);
    const ports = [
      { port: 53, protocol: 'SCTP', error: 'weir.dev/UnsupportedProtocol' },
      { port: 80, protocol: 'TCP' },
    ];
    assert.deepEqual(status.ingress, [{ ip: '10.0.0.1', ipMode: 'Proxy', ports }]);
  });

  test('keeps the time of a condition until its status changes', () => {
    const before = {
      ...accepted,
      type: 'weir.dev/Accepted',
      message: 'other words',
      lastTransitionTime: '2020-01-01T00:00:00Z',
    };
    const facts = factsOf(raw({ conditions: [before, { type: 'example.com/Other', status: 'True' }] }));
    const times = (each: ServiceView): string[] =>
      statusFor(each, facts, NOW).conditions.map((one) => one.lastTransitionTime);
    assert.deepEqual(times(view()), ['2020-01-01T00:00:00Z', '2026-07-01T00:00:00Z']);
    assert.deepEqual(times(view({ conditions: [refused] })), ['2026-07-01T00:00:00Z']);
  });

  test('is the same whatever stands beside it and in whatever order, and different when anything of ours is', () => {
    const status = statusFor(view(), factsOf(raw()), NOW);
    const [first, second] = status.conditions;
    const conditions = [second, { type: 'example.com/Other' }, first] as object[];
    const facts = factsOf(raw({ loadBalancer: { ingress: status.ingress }, conditions }));
    assert.ok(isSaid(statusFor(view(), facts, NOW + 60_000), facts));
    assert.ok(!isSaid(statusFor(view({ addresses: [] }), facts, NOW), facts));
    assert.ok(!isSaid(statusFor(view({ conditions: [accepted] }), facts, NOW), facts));
  });
});

describe('a Service whose tenant has used up its month', () => {
  const exhausted = new Map([['shop', 'used up']]);
  const degraded = (reason: string): Condition => ({ type: 'Degraded', status: 'True', reason, message: 'other' });
  const said = (each: ServiceView): string[] =>
    withExhausted(each, exhausted)
      .conditions.filter(({ type }) => type === 'Degraded')
      .map(({ reason, message }) => `${reason}: ${message}`);

  test('says so, beside what is graver and before what is not', () => {
    assert.deepEqual(said(view()), ['OverLimit: used up']);
    assert.deepEqual(said(view({ conditions: [degraded('NoReadyEndpoints')] })), ['NoReadyEndpoints: other; used up']);
    assert.deepEqual(said(view({ conditions: [degraded('FewerNodes')] })), ['OverLimit: used up; other']);
  });

  test('is told apart from those of other tenants, and from one that is not served', () => {
    assert.deepEqual(said(view({ tenant: 'game' })), []);
    assert.deepEqual(said(view({ addresses: [] })), []);
  });
});

describe('the news of a Service', () => {
  const shown = (...conditions: Condition[]) =>
    factsOf(raw({ conditions: conditions.map((each) => ({ ...each, type: `weir.dev/${each.type}` })) }));
  const news = (each: ServiceView, ...before: Condition[]): string[] =>
    newsFor(each, shown(...before)).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);

  test('are reasons that it does not show yet, and a refusal in other words', () => {
    assert.deepEqual(news(view()), ['Normal Programmed: served']);
    assert.deepEqual(news(view(), programmed), []);
    assert.deepEqual(news(view({ conditions: [{ ...programmed, message: 'served elsewhere' }] }), programmed), []);
    assert.deepEqual(news(view({ conditions: [refused] }), accepted), ['Warning QuotaExceeded: 2 of 2 in use']);
    assert.deepEqual(news(view({ conditions: [refused] }), refused), []);
    const other = { ...refused, message: '3 of 3 in use' };
    assert.deepEqual(news(view({ conditions: [other] }), refused), ['Warning QuotaExceeded: 3 of 3 in use']);
  });

  test('are not what is only on the way, or not known', () => {
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: '' };
    const unknown: Condition = { type: 'Programmed', status: 'Unknown', reason: 'FleetUnreachable', message: '' };
    assert.deepEqual(news(view({ conditions: [accepted, waiting] })), []);
    assert.deepEqual(news(view({ conditions: [accepted, unknown] })), []);
  });
});

/** Takes every apply, or fails as told; Events it keeps by name. */
class FakeApi {
  readonly applied: ApiRequest[] = [];
  readonly events = new Map<string, Json>();
  failure: ApiError | undefined;

  request = async (request: ApiRequest): Promise<Json> => {
    if (request.path.includes('/events/')) {
      if (request.method === 'PATCH') this.events.set(request.path, request.body as Json);
      const found = this.events.get(request.path);
      if (found === undefined) throw new ApiError('NOT_FOUND', 'none', { missing: 'event' });
      return found;
    }
    this.applied.push(request);
    if (this.failure !== undefined) throw this.failure;
    const { status } = request.body as { status: Raw['status'] };
    return raw(status, { version: String(this.applied.length + 100) });
  };
}

function sink(options: { api?: FakeApi; clock?: ManualClock } = {}) {
  const { api = new FakeApi(), clock = new ManualClock() } = options;
  const log = silentLogger();
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  const { signal } = new AbortController();
  return { api, clock, status, write: (...views: ServiceView[]) => status.write(views, signal) };
}

describe('writing status', () => {
  test('applies once, with UID and version as preconditions, and then knows what it wrote', async () => {
    const { api, status, write } = sink();
    status.note('web', raw());
    assert.equal(await write(view()), 'done');
    assert.equal(await write(view()), 'done');
    assert.equal(api.applied.length, 1);
    const [request] = api.applied;
    assert.equal(request?.path, '/api/v1/namespaces/shop/services/web/status');
    assert.equal(request?.contentType, 'application/apply-patch+yaml');
    assert.deepEqual(request?.query, { fieldManager: 'weir-controller', force: 'true' });
    assert.deepEqual(request?.body?.metadata, { namespace: 'shop', name: 'web', uid: 'u1', resourceVersion: '1' });
  });

  test('does not look into a view that is the same object, until the Service says something else', async () => {
    const { api, status, write } = sink();
    let looks = 0;
    const { conditions, ...rest } = view();
    const watched: ServiceView = {
      ...rest,
      get conditions() {
        looks += 1;
        return conditions;
      },
    };
    status.note('web', raw());
    await write(watched);
    const before = looks;
    assert.equal(await write(watched), 'done');
    assert.equal(looks, before);
    status.note('web', raw({}, { version: '200' }));
    await write(watched);
    assert.equal(api.applied.length, 2);
  });

  test('leaves one that changed meanwhile for the next time, and asks to be called again', async () => {
    const { api, status, write } = sink();
    status.note('web', raw());
    api.failure = new ApiError('CONFLICT', 'changed');
    assert.equal(await write(view()), 'again');
    assert.equal(api.events.size, 0, 'nothing is told that is not written');
    api.failure = undefined;
    status.note('web', raw({}, { version: '2' }));
    assert.equal(await write(view()), 'done');
    assert.deepEqual(api.applied.at(-1)?.body?.metadata, {
      namespace: 'shop',
      name: 'web',
      uid: 'u1',
      resourceVersion: '2',
    });
  });

  test('drops one that is gone, another of its name, and one that is no load balancer any more', async () => {
    const { api, status, write } = sink();
    status.note('web', raw({}, { uid: 'another' }));
    await write(view());
    status.note('web', raw({}, { type: 'ClusterIP' }));
    await write(view());
    status.note('web', undefined);
    await write(view());
    status.note('web', raw());
    api.failure = new ApiError('NOT_FOUND', 'gone', { missing: 'web' });
    assert.equal(await write(view()), 'done');
    assert.equal(api.applied.length, 1);
  });

  test('takes back what it said of a Service that left and still exists, once', async () => {
    const { api, status, write } = sink();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    status.note('web', raw({ loadBalancer: { ingress: [{ ip: '10.0.0.1' }] }, conditions }, { type: 'ClusterIP' }));
    await write();
    await write();
    assert.deepEqual(
      api.applied.map((each) => each.body?.status),
      [{}],
    );
  });

  test('does not ask again for just what the API server refused', async () => {
    const { api, status, write } = sink();
    status.note('web', raw());
    api.failure = new ApiError('REFUSED', 'invalid');
    assert.deepEqual([await write(view()), await write(view())], ['done', 'done']);
    assert.equal(api.applied.length, 1);
    api.failure = undefined;
    await write(view({ addresses: ['10.0.0.2'] }));
    assert.equal(api.applied.length, 2);
  });

  test('does not ask again to take back what the API server refused to', async () => {
    const { api, status, write } = sink();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    status.note('web', raw({ conditions }, { type: 'ClusterIP' }));
    api.failure = new ApiError('REFUSED', 'invalid');
    assert.deepEqual([await write(), await write()], ['done', 'done']);
    assert.equal(api.applied.length, 1);
  });

  test('asks again for what was refused after ten minutes: rights may be given by then', async () => {
    const { api, clock, status, write } = sink();
    status.note('web', raw());
    api.failure = new ApiError('FORBIDDEN', 'no');
    const same = view();
    await write(same);
    await clock.advance(10 * 60_000);
    await write(same);
    assert.equal(api.applied.length, 2);
  });

  test('does not ask again because the clock moved on: a condition that never got there has no time yet', async () => {
    const { api, clock, status, write } = sink();
    status.note('web', raw());
    api.failure = new ApiError('FORBIDDEN', 'no');
    await write(view());
    await clock.advance(60_000);
    await write(view());
    assert.equal(api.applied.length, 1);
  });

  test('tells on when the API server is away, to be tried again', async () => {
    const { api, status, write } = sink();
    status.note('web', raw());
    api.failure = new ApiError('AWAY', 'refused');
    await assert.rejects(write(view()), { code: 'AWAY' });
  });

  test('counts what others write to a status, and not what does not concern it', () => {
    const { status } = sink();
    status.note('web', raw());
    const before = status.observed;
    status.note('web', raw({}, { version: '2' }));
    assert.equal(status.observed, before);
    status.note('web', raw({ loadBalancer: { ingress: [{ ip: '6.6.6.6' }] } }, { version: '3' }));
    assert.equal(status.observed, before + 1);
  });

  test('renews the Event of a refused Service every half hour, also under a new leader', async () => {
    const { api, clock, status, write } = sink();
    const counts = (): number[] =>
      [...api.events.values()].map((event) => (event.series as { count: number } | undefined)?.count ?? 1);
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.note('web', raw());
    await write(no);
    await write(no);
    assert.deepEqual(counts(), [1]);
    await clock.advance(31 * 60_000);
    await write(no);
    assert.deepEqual(counts(), [2]);
    const next = sink({ api, clock });
    next.status.note('web', raw(api.applied[0]?.body?.status as Raw['status']));
    await next.write(no);
    assert.deepEqual(counts(), [2], 'it was told a moment ago');
    await clock.advance(31 * 60_000);
    await next.write(no);
    assert.deepEqual(counts(), [3]);
  });
});
