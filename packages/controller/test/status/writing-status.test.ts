import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition, ServiceView } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { ApiError } from '../../src/kubernetes/api-error.ts';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { accepted, type Raw, raw, refused, view } from '../fixtures/views.ts';

/** Takes every apply, or fails as told; Events it keeps by name. */
class FakeApi {
  readonly applied: ApiRequest[] = [];
  readonly events = new Map<string, Json>();
  failure: ApiError | undefined;
  eventFailure: ApiError | undefined;
  /** How often it was asked about Events. */
  eventRequests = 0;

  request = async (request: ApiRequest): Promise<Json> => {
    if (request.path.includes('/events/')) {
      this.eventRequests += 1;
      if (this.eventFailure !== undefined) throw this.eventFailure;
      if (request.method === 'PATCH') this.events.set(request.path, request.body as Json);
      const found = this.events.get(request.path);
      if (found === undefined) throw new ApiError('NOT_FOUND', 'none', { missing: 'event' });
      return found;
    }
    this.applied.push(request);
    if (this.failure !== undefined) throw this.failure;
    const { metadata, status } = request.body as unknown as Pick<Raw, 'metadata' | 'status'>;
    return raw(status, { version: String(this.applied.length + 100), uid: metadata.uid });
  };
}

function sink(options: { api?: FakeApi; clock?: ManualClock; loadBalancerClass?: string } = {}) {
  const { api = new FakeApi(), clock = new ManualClock() } = options;
  const log = silentLogger();
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const { loadBalancerClass } = options;
  const status = new KubernetesStatus({ api, events, clock, log, ...(loadBalancerClass && { loadBalancerClass }) });
  const { signal } = new AbortController();
  const write = (...views: ServiceView[]): Promise<'done' | 'again'> => {
    status.want({ kind: 'decided', views });
    return status.write(signal);
  };
  return { api, clock, status, write };
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

  test('leaves one that is being deleted as it is, whatever still holds it', async () => {
    const { api, status, write } = sink();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    const { metadata, ...leaving } = raw({ conditions }) as unknown as Raw;
    const deletionTimestamp = '2026-07-01T00:00:00Z';
    status.note('web', { ...leaving, metadata: { ...metadata, deletionTimestamp } } as unknown as Json);
    await write();
    await write(view());
    assert.deepEqual([api.applied, api.eventRequests], [[], 0]);
  });

  test('leaves alone what another fleet says, by the name in which each writes, that has its class', async () => {
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    const names = new Set<unknown>();
    const classes = ['weir.dev/weir', 'weir.dev/edge', `${'a'.repeat(200)}.dev/edge`];
    for (const loadBalancerClass of classes) {
      const { api, status, write } = sink({ loadBalancerClass });
      const left = (change: Parameters<typeof raw>[1]): Json =>
        raw({ loadBalancer: { ingress: [{ ip: '10.0.0.1' }] }, conditions }, change);
      status.note('web', raw());
      await write(view());
      const saidBy = String(api.applied[0]?.query?.fieldManager);
      assert.ok(saidBy.length <= 128, 'which is what the API server takes');
      names.add(saidBy);
      status.note('theirs', left({ saidBy: 'weir-controller:example.com/other', uid: 'u2' }));
      await write(view());
      assert.equal(api.applied.length, 1);
      status.note('ours', left({ saidBy, uid: 'u3' }));
      await write(view());
      assert.deepEqual(api.applied[1]?.body?.status, {});
      assert.equal(api.applied.length, 2);
    }
    assert.equal(names.size, classes.length);
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

  test('tells of a refused Service a minute later when the API server was busy, and not half an hour', async () => {
    const { api, clock, status, write } = sink();
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.note('web', raw());
    api.eventFailure = new ApiError('AWAY', 'too many requests');
    await write(no);
    await clock.advance(31_000);
    await write(no);
    assert.equal(api.eventRequests, 1, 'never at once');
    api.eventFailure = undefined;
    await clock.advance(31_000);
    await write(no);
    assert.equal(api.events.size, 1);
    await clock.advance(5 * 60_000);
    await write(no);
    assert.equal(api.eventRequests, 3, 'and then it was told');
  });

  test('tells news that a busy API server did not take a minute later, once, and those that are true by then', async () => {
    const { api, clock, status, write } = sink();
    const reasons = (): unknown[] => [...api.events.values()].map(({ reason }) => reason);
    const fewer: Condition = { type: 'Degraded', status: 'True', reason: 'FewerNodes', message: 'on 1 of 2' };
    const { conditions } = view();
    const good = view();
    const degraded = view({ conditions: [...conditions, fewer] });
    status.note('web', raw());
    api.eventFailure = new ApiError('AWAY', 'too many requests');
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'of Programmed and FewerNodes');
    await clock.advance(31_000);
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'never at once');
    api.eventFailure = undefined;
    await write(good);
    await clock.advance(31_000);
    await write(good);
    assert.deepEqual(reasons(), ['Programmed'], 'of what is over nobody is told');
    const requests = api.eventRequests;
    await clock.advance(5 * 60_000);
    await write(good);
    assert.equal(api.eventRequests, requests, 'and it was told');
  });

  test('does not make up for news a second time, nor for those that may not be written', async () => {
    for (const [code, requests] of [
      ['AWAY', 2],
      ['FORBIDDEN', 1],
    ] as const) {
      const { api, clock, status, write } = sink();
      status.note('web', raw());
      api.eventFailure = new ApiError(code, 'no');
      const same = view();
      for (let minute = 0; minute < 10; minute += 1) {
        await write(same);
        await clock.advance(61_000);
      }
      assert.equal(api.eventRequests, requests, code);
    }
  });

  test('asks once in half an hour for an Event that may not be written', async () => {
    const { api, clock, status, write } = sink();
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.note('web', raw());
    api.eventFailure = new ApiError('FORBIDDEN', 'events is forbidden');
    for (let minute = 0; minute < 29; minute++) {
      await write(no);
      await clock.advance(60_000);
    }
    assert.equal(api.eventRequests, 1);
    await clock.advance(2 * 60_000);
    await write(no);
    assert.equal(api.eventRequests, 2);
  });

  test('tells why a Service has been pending for half a minute, and renews it; not of one that gets its address at once', async () => {
    const { api, clock, status, write } = sink();
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: 'of n1' };
    const pending = view({ state: 'Pending', addresses: [], conditions: [accepted, waiting] });
    const told = (): string[] =>
      [...api.events.values()].map((event) => {
        const { count = 1 } = (event.series ?? {}) as { count?: number };
        return `${event.type} ${event.reason} ${count}`;
      });
    status.note('web', raw());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(told(), []);
    await clock.advance(31_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 1']);
    await clock.advance(31 * 60_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 2']);
    assert.equal(api.applied.length, 1, 'its status says the same all the while');
    await write(view());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 2', 'Normal Programmed 1'], 'it begins anew');
    // The watch missed that the Service was deleted and made again.
    status.note('web', raw({}, { uid: 'u2' }));
    await write({ ...pending, uid: 'u2' });
    await clock.advance(29_000);
    await write({ ...pending, uid: 'u2' });
    assert.equal(told().length, 2, 'another Service of its name has not been pending for so long');
  });
});
