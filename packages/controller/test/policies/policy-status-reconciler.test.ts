import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  DEFAULT_FLEET_SETTINGS,
  type NamespaceObject,
  type TenantPolicyObject,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { ALWAYS_LEADER, type Leadership } from '../../src/leader/leadership.ts';
import { PolicyStatusReconciler } from '../../src/policies/policy-status-reconciler.ts';
import { FakeSource, serviceObject } from '../fixtures/fake-source.ts';

const meta = (name: string) => ({ uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null });
const namespaceObject = (name: string): NamespaceObject => meta(name);
const policyObject = (name: string, priority = 0): TenantPolicyObject => ({
  ...meta(name),
  spec: { ...UNRESTRICTED_POLICY, priority },
});

interface RawChange {
  readonly version?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly status?: unknown;
}

const raw = (name: string, change: RawChange = {}): Json => {
  const { version = '1', uid = `uid-${name}`, generation = 1, status } = change;
  return { metadata: { uid, name, resourceVersion: version, generation }, ...(status !== undefined && { status }) };
};

/** A fake API server that accepts every apply, or fails with `failure`. */
class FakeApi {
  readonly applied: KubeApiRequest[] = [];
  #version = 100;
  failure: KubeApiError | undefined;
  /** Called while a request is in progress. */
  meanwhile: () => void = () => undefined;

  request = async (request: KubeApiRequest): Promise<Json> => {
    this.applied.push(request);
    this.meanwhile();
    if (this.failure !== undefined) throw this.failure;
    const { metadata, status } = request.body as {
      metadata: { name: string };
      status: { observedGeneration: number };
    };
    this.#version += 1;
    return raw(metadata.name, { version: `${this.#version}`, generation: status.observedGeneration, status });
  };

  versionsFor(name: string): unknown[] {
    const bodies = this.applied.filter(({ path }) => path.includes(`/${name}/`)).map(({ body }) => body ?? {});
    return bodies.map(({ metadata }) => (metadata as { resourceVersion: string }).resourceVersion);
  }

  /** Returns a line for each apply since the last call. `shop 1: 2 of 1` stands for precedence 1, two namespaces and one tenant. */
  takeApplied(): string[] {
    return this.applied.splice(0).map(({ path, body }) => {
      const status = body?.status as Readonly<Record<string, number>>;
      return `${path.split('/').at(-2)} ${status.precedence}: ${status.namespaceCount} of ${status.tenantCount}`;
    });
  }
}

class FakeLeader implements Leadership {
  isLeader = false;
  #listener: () => void = () => undefined;
  onChange(listener: () => void): () => void {
    this.#listener = listener;
    return () => undefined;
  }
  setLeader(isLeader: boolean): void {
    this.isLeader = isLeader;
    this.#listener();
  }
  async recheck(): Promise<void> {}
  async close(): Promise<void> {}
}

/** Starts a reconciler with two namespaces, and the policies `high` and `low` that select both namespaces. */
async function start(context: TestContext, leader: Leadership = ALWAYS_LEADER) {
  const api = new FakeApi();
  const clock = new ManualClock();
  const source = new FakeSource({
    namespaces: [namespaceObject('a'), namespaceObject('b')],
    policies: [policyObject('high', 1), policyObject('low')],
  });
  const reconciler = new PolicyStatusReconciler({ api, settings: DEFAULT_FLEET_SETTINGS, clock, log: silentLogger() });
  for (const name of ['high', 'low']) reconciler.observe(name, raw(name));
  reconciler.start({ source, leader });
  context.after(() => reconciler.close());
  const pass = (ms = 2_000): Promise<void> => clock.advance(ms);
  await pass();
  return { api, clock, source, reconciler, pass };
}

describe('the status of TenantPolicies', () => {
  test('is applied completely and once, with UID and version as preconditions', async (context) => {
    const { api, pass } = await start(context);
    const [high, low] = api.applied;
    assert.equal(high?.path, '/apis/weir.dev/v1alpha1/tenantpolicies/high/status');
    assert.equal(high?.contentType, 'application/apply-patch+yaml');
    assert.deepEqual(high?.body, {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'TenantPolicy',
      metadata: { name: 'high', uid: 'uid-high', resourceVersion: '1' },
      status: {
        observedGeneration: 1,
        precedence: 1,
        tenantCount: 2,
        namespaceCount: 2,
        tenants: [
          { name: 'a', namespaces: ['a'] },
          { name: 'b', namespaces: ['b'] },
        ],
        refusedCount: 0,
        overriddenCount: 0,
      },
    });
    assert.deepEqual(low?.body?.status, {
      observedGeneration: 1,
      precedence: 2,
      tenantCount: 0,
      namespaceCount: 0,
      refusedCount: 0,
      overriddenCount: 2,
      overridden: [{ policy: 'high', namespaces: ['a', 'b'] }],
    });
    await pass(600_000);
    assert.equal(api.applied.length, 2);
  });

  test('is not written after unrelated changes, or after the watch event of its own write', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    for (const [i, request] of api.applied.splice(0).entries()) {
      const name = request.path.split('/').at(-2) ?? '';
      reconciler.observe(name, raw(name, { version: `${101 + i}`, status: request.body?.status }));
    }
    source.set({ services: [serviceObject('web')] });
    await pass();
    source.set({ namespaces: [namespaceObject('a'), namespaceObject('b')] });
    await pass();
    assert.deepEqual(api.takeApplied(), []);
  });

  test('follows namespaces and policies, with one write for a burst of changes', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    api.takeApplied();
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (let i = 3; i <= names.length; i += 1) source.set({ namespaces: names.slice(0, i).map(namespaceObject) });
    await pass();
    assert.deepEqual(api.takeApplied(), ['high 1: 5 of 5', 'low 2: 0 of 0']);
    reconciler.observe('high', undefined);
    source.set({ policies: [policyObject('low')] });
    await pass();
    assert.deepEqual(api.takeApplied(), ['low 1: 5 of 5']);
  });

  test('is restored once if another client changes it', async (context) => {
    const { api, reconciler, pass } = await start(context);
    api.takeApplied();
    reconciler.observe('high', raw('high', { version: '200', status: { precedence: 7 } }));
    await pass();
    assert.deepEqual(api.takeApplied(), ['high 1: 2 of 2']);
  });

  test('is written for a policy that changed meanwhile as soon as the watch has delivered the change', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    api.takeApplied();
    api.failure = new KubeApiError('CONFLICT', 'changed');
    source.set({ namespaces: [namespaceObject('a')] });
    await pass();
    api.failure = undefined;
    api.takeApplied();
    reconciler.observe('high', raw('high', { version: '300', generation: 2 }));
    await pass();
    assert.deepEqual(api.applied[0]?.body?.metadata, { name: 'high', uid: 'uid-high', resourceVersion: '300' });
    assert.deepEqual(api.takeApplied()[0], 'high 1: 1 of 1');
  });

  test('is not read from a response that is older than the last watch event', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    api.takeApplied();
    api.meanwhile = () => {
      api.meanwhile = () => undefined;
      reconciler.observe('high', raw('high', { version: '400', generation: 2 }));
    };
    source.set({ namespaces: [namespaceObject('a')] });
    await pass();
    assert.deepEqual(api.versionsFor('high'), ['101', '400']);
  });

  test('is written by the leader only, and again in its next term', async (context) => {
    const leader = new FakeLeader();
    const { api, source, pass } = await start(context, leader);
    assert.deepEqual(api.takeApplied(), []);
    leader.setLeader(true);
    await pass();
    assert.deepEqual(api.takeApplied(), ['high 1: 2 of 2', 'low 2: 0 of 0']);
    leader.setLeader(false);
    source.set({ namespaces: [] });
    await pass();
    assert.deepEqual(api.takeApplied(), []);
    leader.setLeader(true);
    await pass();
    assert.deepEqual(api.takeApplied(), ['high 1: 0 of 0', 'low 2: 0 of 0']);
  });

  test('is retried until the API server is reachable', async (context) => {
    const { api, source, pass } = await start(context);
    api.takeApplied();
    api.failure = new KubeApiError('AWAY', 'no answer');
    source.set({ namespaces: [] });
    await pass(120_000);
    assert.ok(api.applied.length >= 4 && api.applied.length < 40, `${api.applied.length} requests`);
    api.failure = undefined;
    api.takeApplied();
    await pass(31_000);
    assert.deepEqual(api.takeApplied(), ['high 1: 0 of 0', 'low 2: 0 of 0']);
  });

  test('is retried ten minutes after a refusal, since permissions may have been granted', async (context) => {
    const { api, source, pass } = await start(context);
    api.takeApplied();
    for (const code of ['FORBIDDEN', 'REFUSED'] as const) {
      api.failure = new KubeApiError(code, 'no');
      source.set({ namespaces: [namespaceObject(code)] });
      await pass(500_000);
      assert.deepEqual(api.takeApplied(), ['high 1: 1 of 1', 'low 2: 0 of 0'], code);
      api.failure = undefined;
      await pass(200_000);
      assert.deepEqual(api.takeApplied(), ['high 1: 1 of 1', 'low 2: 0 of 0'], code);
    }
  });

  test('has the problems of the policy, also of a policy that was never valid', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    api.applied.length = 0;
    const problem = { code: 'InvalidObject', severity: 'error', heals: false } as const;
    reconciler.observe('new', raw('new'));
    source.set({
      problems: [
        { ...problem, subject: 'TenantPolicy new', message: 'spec.limits.trafficPerMonth must be whole' },
        { ...problem, subject: 'Service shop/new', message: 'other' },
      ],
    });
    await pass();
    const counts = { tenantCount: 0, namespaceCount: 0, refusedCount: 0, overriddenCount: 0 };
    assert.deepEqual(
      api.applied.map(({ body }) => body?.status),
      [{ observedGeneration: 1, problems: ['spec.limits.trafficPerMonth must be whole'], ...counts }],
    );
  });

  test('is not written for a policy that is deleted or being deleted', async (context) => {
    const { api, source, reconciler, pass } = await start(context);
    api.takeApplied();
    const { metadata } = raw('high', { version: '500' });
    reconciler.observe('high', { metadata: { ...(metadata as object), deletionTimestamp: '2026-07-01T00:00:00Z' } });
    api.failure = new KubeApiError('NOT_FOUND', 'gone', { missingName: 'low' });
    source.set({ namespaces: [] });
    await pass();
    assert.deepEqual(api.takeApplied(), ['low 2: 0 of 0']);
    reconciler.observe('low', undefined);
    await pass(120_000);
    assert.deepEqual(api.takeApplied(), []);
  });

  test('is retried only every ten minutes if the installed kind has no status', async (context) => {
    const { api, source, pass } = await start(context);
    api.takeApplied();
    api.failure = new KubeApiError('NOT_FOUND', 'not found', { missingName: 'low' });
    source.set({ namespaces: [] });
    await pass(500_000);
    assert.equal(api.takeApplied().length, 4);
    api.failure = undefined;
    await pass(200_000);
    assert.deepEqual(api.takeApplied(), ['high 1: 0 of 0', 'low 2: 0 of 0']);
  });
});
