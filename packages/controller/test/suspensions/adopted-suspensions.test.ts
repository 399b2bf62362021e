import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Suspension, SuspensionObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import type { SuspensionObjectWriter } from '../../src/suspensions/deferred-suspension-calls.ts';
import { KubernetesSuspensionObjects } from '../../src/suspensions/kubernetes-suspension-objects.ts';
import { type ControllerHarnessOptions, heartbeat, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, suspensionObject } from '../fixtures/fake-source.ts';

const REQUEST: Suspension = {
  uid: 'request-1',
  name: 'tenant.shop',
  target: { kind: 'tenant', tenant: 'shop' },
  message: 'Stop.',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: 1_700_000_000_000,
};

const REAL: Suspension = { ...REQUEST, uid: 'uid-1', origin: { kind: 'kubernetes' } };

/** A fake API server that keeps Suspensions by name. */
class FakeSuspensions implements SuspensionObjectWriter {
  readonly objects = new Map<string, SuspensionObject>();
  isUnreachable = false;

  async getOrCreate({ name, target, message, until, createdAt }: Suspension): Promise<SuspensionObject> {
    if (this.isUnreachable) throw new KubeApiError('AWAY', 'refused');
    const found = this.objects.get(name);
    if (found !== undefined) return found;
    const object = suspensionObject(name, { uid: 'uid-1', target, message, until, createdAt });
    this.objects.set(name, object);
    return object;
  }

  async remove({ name }: Suspension): Promise<void> {
    this.objects.delete(name);
  }
}

describe('a suspension made in the store while the API server was unreachable', () => {
  const start = async (
    context: Parameters<typeof startControllerHarness>[0],
    options: ControllerHarnessOptions = {},
  ) => {
    const clock = new ManualClock();
    /** The UIDs of the suspensions in the store, after each change of the store. */
    const states: string[] = [];
    const store = new MemoryStore({
      clock,
      onChange: () => void states.push([...store.suspensions.content.suspensions.keys()].join(' and ')),
    });
    await store.suspensions.put(REQUEST);
    const suspensions = new FakeSuspensions();
    const source = new FakeSource({}, 'kubernetes');
    const harness = await startControllerHarness(context, { clock, store, source, suspensions, ...options });
    const stored = async (): Promise<readonly Suspension[]> => (await store.suspensions.read()).suspensions;
    return { ...harness, suspensions, states, stored };
  };

  test('becomes a Suspension, and stays in force meanwhile', async (context) => {
    const { store, suspensions, stored, advance, states } = await start(context);
    await advance(2_000);
    assert.deepEqual([...suspensions.objects.keys()], ['tenant.shop']);
    assert.deepEqual(await stored(), [REAL]);
    assert.deepEqual([...new Set(states)], ['request-1', 'request-1 and uid-1', 'uid-1']);
    assert.equal((await store.suspensions.audit()).length, 1, 'the audit trail has the request only');
  });

  test('becomes a Suspension while the controller runs and nothing else changes', async (context) => {
    const { store, suspensions, stored, advance } = await start(context);
    await advance(2_000);
    const second: Suspension = {
      ...REQUEST,
      uid: 'request-2',
      name: 'tenant.game',
      target: { kind: 'tenant', tenant: 'game' },
    };
    await store.suspensions.put(second);
    await advance(2_000);
    assert.ok(suspensions.objects.has('tenant.game'));
    assert.ok((await stored()).every(({ origin }) => origin.kind === 'kubernetes'));
  });

  test('stays in force until the API server is reachable', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isUnreachable = true;
    const { stored, advance } = await start(context, { suspensions });
    await advance(120_000);
    assert.deepEqual(await stored(), [REQUEST]);
    suspensions.isUnreachable = false;
    await advance(60_000);
    assert.deepEqual(await stored(), [REAL]);
  });

  test('is in a list that is declared complete above every sequence that a proxy reports', async (context) => {
    const status = { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' as const };
    const { store, advance, clock } = await start(context, { status });
    await advance(2_000);
    const cutoffSequence = clock.now() + 86_400_000;
    for (let second = 0; second < 3; second += 1) {
      await store.heartbeats.record({ ...heartbeat('a', []), cutoffSequence });
      await advance(1_000);
    }
    const { completeSince, sequence } = await store.suspensions.read();
    assert.equal(completeSince, cutoffSequence + 1);
    assert.equal(sequence, completeSince, 'declared once');
  });

  test('does not return if a person lifts it before the API server is reachable', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isUnreachable = true;
    const { store, advance } = await start(context, { suspensions });
    await advance(60_000);
    await store.suspensions.remove(REQUEST.uid);
    suspensions.isUnreachable = false;
    await advance(60_000);
    assert.equal(suspensions.objects.size, 0);
  });

  test('stays in the store if the controller cannot write Suspensions', async (context) => {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock });
    await store.suspensions.put(REQUEST);
    const { advance } = await startControllerHarness(context, { clock, store });
    await advance(60_000);
    assert.deepEqual((await store.suspensions.read()).suspensions, [REQUEST]);
  });

  const uidsAfterAdoption = async (
    context: Parameters<typeof startControllerHarness>[0],
    object: Partial<SuspensionObject>,
  ) => {
    const suspensions = new FakeSuspensions();
    const { name, target, message } = REQUEST;
    suspensions.objects.set(name, suspensionObject(name, { uid: 'uid-1', target, message, ...object }));
    const { stored, advance } = await start(context, { suspensions });
    await advance(60_000);
    return (await stored()).map(({ uid }) => uid);
  };

  test('adopts an existing Suspension of its name and target', async (context) => {
    assert.deepEqual(await uidsAfterAdoption(context, {}), ['uid-1']);
    const newer = { createdAt: 1_700_000_000_500, until: 1_700_000_900_000 };
    assert.deepEqual(await uidsAfterAdoption(context, newer), ['uid-1'], 'a newer Suspension may end sooner');
  });

  test('is not replaced by a Suspension of another target, or one that ends sooner or has expired', async (context) => {
    assert.deepEqual(await uidsAfterAdoption(context, { target: { kind: 'tenant', tenant: 'game' } }), ['request-1']);
    const older = { createdAt: 1_600_000_000_000, until: 1_700_000_900_000 };
    assert.deepEqual(await uidsAfterAdoption(context, older), ['request-1']);
    assert.deepEqual(await uidsAfterAdoption(context, { until: 1_600_000_000_000 }), ['request-1']);
  });
});

describe('a Suspension on an API server', () => {
  const { signal } = new AbortController();
  const response = {
    metadata: { name: 'tenant.shop', uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { target: { type: 'Tenant', tenant: 'shop' }, message: 'Stop.', until: '2026-02-01T00:00:00.000Z' },
  };
  const createWriter = (responseTo: (request: KubeApiRequest) => Json) => {
    const requests: KubeApiRequest[] = [];
    const api = {
      async request(request: KubeApiRequest): Promise<Json> {
        requests.push(request);
        return responseTo(request);
      },
    };
    return { requests, suspensions: new KubernetesSuspensionObjects({ api }) };
  };

  test('is created under the name of the suspension', async () => {
    const { requests, suspensions } = createWriter(() => response);
    const until = Date.UTC(2026, 1, 1);
    const object = await suspensions.getOrCreate({ ...REQUEST, until }, signal);
    assert.deepEqual([object.uid, object.until, object.target], ['uid-1', until, REQUEST.target]);
    assert.deepEqual([requests[0]?.method, requests[0]?.path], ['POST', '/apis/weir.dev/v1alpha1/suspensions']);
    assert.deepEqual(requests[0]?.body, {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'Suspension',
      metadata: { name: 'tenant.shop' },
      spec: response.spec,
    });
  });

  test('is read instead if it exists already', async () => {
    const { requests, suspensions } = createWriter(({ method }) => {
      if (method === 'POST') throw new KubeApiError('CONFLICT', 'already exists');
      return response;
    });
    assert.equal((await suspensions.getOrCreate(REQUEST, signal)).uid, 'uid-1');
    assert.equal(requests[1]?.path, '/apis/weir.dev/v1alpha1/suspensions/tenant.shop');
  });
});
