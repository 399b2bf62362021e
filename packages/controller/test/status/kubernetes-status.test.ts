import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceView } from '@weir/model';
import type { Json } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { createStatusHarness } from '../fixtures/kubernetes-status.ts';
import { accepted, type RawService, rawService, view } from '../fixtures/views.ts';

describe('writing status', () => {
  test('applies once, with UID and version as preconditions', async () => {
    const { api, status, write } = createStatusHarness();
    status.observe('web', rawService());
    assert.equal(await write(view()), 'complete');
    assert.equal(await write(view()), 'complete');
    assert.equal(api.applied.length, 1);
    const [request] = api.applied;
    assert.equal(request?.path, '/api/v1/namespaces/shop/services/web/status');
    assert.equal(request?.contentType, 'application/apply-patch+yaml');
    assert.deepEqual(request?.query, { fieldManager: 'weir-controller', force: 'true' });
    assert.deepEqual(request?.body?.metadata, { namespace: 'shop', name: 'web', uid: 'u1', resourceVersion: '1' });
  });

  test('does not read a view that is the same object until the status of the Service changes', async () => {
    const { api, status, write } = createStatusHarness();
    let reads = 0;
    const { conditions, ...rest } = view();
    const watched: ServiceView = {
      ...rest,
      get conditions() {
        reads += 1;
        return conditions;
      },
    };
    status.observe('web', rawService());
    await write(watched);
    const before = reads;
    assert.equal(await write(watched), 'complete');
    assert.equal(reads, before);
    status.observe('web', rawService({}, { version: '200' }));
    await write(watched);
    assert.equal(api.applied.length, 2);
  });

  test('leaves a Service that changed meanwhile to the next write, and requests that write', async () => {
    const { api, status, write } = createStatusHarness();
    status.observe('web', rawService());
    api.failure = new KubeApiError('CONFLICT', 'changed');
    assert.equal(await write(view()), 'recheck');
    assert.equal(api.events.size, 0, 'no Event for a status that is not written');
    api.failure = undefined;
    status.observe('web', rawService({}, { version: '2' }));
    assert.equal(await write(view()), 'complete');
    assert.deepEqual(api.applied.at(-1)?.body?.metadata, {
      namespace: 'shop',
      name: 'web',
      uid: 'u1',
      resourceVersion: '2',
    });
  });

  test('ignores a deleted Service, another Service of its name, and a Service that is not a load balancer any more', async () => {
    const { api, status, write } = createStatusHarness();
    status.observe('web', rawService({}, { uid: 'another' }));
    await write(view());
    status.observe('web', rawService({}, { type: 'ClusterIP' }));
    await write(view());
    status.observe('web', undefined);
    await write(view());
    status.observe('web', rawService());
    api.failure = new KubeApiError('NOT_FOUND', 'gone', { missingName: 'web' });
    assert.equal(await write(view()), 'complete');
    assert.equal(api.applied.length, 1);
  });

  test('removes the status once from a Service that is not served any more', async () => {
    const { api, status, write } = createStatusHarness();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    status.observe(
      'web',
      rawService({ loadBalancer: { ingress: [{ ip: '10.0.0.1' }] }, conditions }, { type: 'ClusterIP' }),
    );
    await write();
    await write();
    assert.deepEqual(
      api.applied.map((each) => each.body?.status),
      [{}],
    );
  });

  test('does not write to a Service that is being deleted', async () => {
    const { api, status, write } = createStatusHarness();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    const { metadata, ...leaving } = rawService({ conditions }) as unknown as RawService;
    const deletionTimestamp = '2026-07-01T00:00:00Z';
    status.observe('web', { ...leaving, metadata: { ...metadata, deletionTimestamp } } as unknown as Json);
    await write();
    await write(view());
    assert.deepEqual([api.applied, api.eventRequests], [[], 0]);
  });

  test('keeps the status of another fleet, whose class is in its field manager', async () => {
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    const names = new Set<unknown>();
    const classes = ['weir.dev/weir', 'weir.dev/edge', `${'a'.repeat(200)}.dev/edge`];
    for (const loadBalancerClass of classes) {
      const { api, status, write } = createStatusHarness({ loadBalancerClass });
      const left = (change: Parameters<typeof rawService>[1]): Json =>
        rawService({ loadBalancer: { ingress: [{ ip: '10.0.0.1' }] }, conditions }, change);
      status.observe('web', rawService());
      await write(view());
      const statusManager = String(api.applied[0]?.query?.fieldManager);
      assert.ok(statusManager.length <= 128, 'which is what the API server takes');
      names.add(statusManager);
      status.observe('theirs', left({ statusManager: 'weir-controller:example.com/other', uid: 'u2' }));
      await write(view());
      assert.equal(api.applied.length, 1);
      status.observe('ours', left({ statusManager, uid: 'u3' }));
      await write(view());
      assert.deepEqual(api.applied[1]?.body?.status, {});
      assert.equal(api.applied.length, 2);
    }
    assert.equal(names.size, classes.length);
  });

  test('does not retry the same status after a refusal', async () => {
    const { api, status, write } = createStatusHarness();
    status.observe('web', rawService());
    api.failure = new KubeApiError('REFUSED', 'invalid');
    assert.deepEqual([await write(view()), await write(view())], ['complete', 'complete']);
    assert.equal(api.applied.length, 1);
    api.failure = undefined;
    await write(view({ addresses: ['10.0.0.2'] }));
    assert.equal(api.applied.length, 2);
  });

  test('does not retry the removal of a status after a refusal', async () => {
    const { api, status, write } = createStatusHarness();
    const conditions = [{ ...accepted, type: 'weir.dev/Accepted', lastTransitionTime: '2020-01-01T00:00:00Z' }];
    status.observe('web', rawService({ conditions }, { type: 'ClusterIP' }));
    api.failure = new KubeApiError('REFUSED', 'invalid');
    assert.deepEqual([await write(), await write()], ['complete', 'complete']);
    assert.equal(api.applied.length, 1);
  });

  test('retries a refused status after ten minutes, since permissions may have been granted', async () => {
    const { api, clock, status, write } = createStatusHarness();
    status.observe('web', rawService());
    api.failure = new KubeApiError('FORBIDDEN', 'no');
    const same = view();
    await write(same);
    await clock.advance(10 * 60_000);
    await write(same);
    assert.equal(api.applied.length, 2);
  });

  test('does not treat the new time of a refused condition as a change', async () => {
    const { api, clock, status, write } = createStatusHarness();
    status.observe('web', rawService());
    api.failure = new KubeApiError('FORBIDDEN', 'no');
    await write(view());
    await clock.advance(60_000);
    await write(view());
    assert.equal(api.applied.length, 1);
  });

  test('rejects if the API server is unreachable', async () => {
    const { api, status, write } = createStatusHarness();
    status.observe('web', rawService());
    api.failure = new KubeApiError('AWAY', 'refused');
    await assert.rejects(write(view()), { code: 'AWAY' });
  });

  test('increases observedRevision only if another client changes the status', () => {
    const { status } = createStatusHarness();
    status.observe('web', rawService());
    const before = status.observedRevision;
    status.observe('web', rawService({}, { version: '2' }));
    assert.equal(status.observedRevision, before);
    status.observe('web', rawService({ loadBalancer: { ingress: [{ ip: '6.6.6.6' }] } }, { version: '3' }));
    assert.equal(status.observedRevision, before + 1);
  });
});
