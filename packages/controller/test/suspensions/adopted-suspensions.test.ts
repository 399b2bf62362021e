import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Suspension, SuspensionObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import type { SuspensionObjectWriter } from '../../src/suspensions/deferred-suspension-calls.ts';
import { KubernetesSuspensionWriter } from '../../src/suspensions/kubernetes-suspension-writer.ts';
import { type ControllerHarnessOptions, startControllerHarness } from '../fixtures/controller-harness.ts';
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

/** Keeps Suspensions by name, as an API server does. */
class FakeSuspensions implements SuspensionObjectWriter {
  readonly objects = new Map<string, SuspensionObject>();
  isAway = false;

  async getOrCreate({ name, target, message, until, createdAt }: Suspension): Promise<SuspensionObject> {
    if (this.isAway) throw new KubeApiError('AWAY', 'refused');
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

describe('a cut-off that was made in the store while the API server was away', () => {
  const start = async (
    context: Parameters<typeof startControllerHarness>[0],
    options: ControllerHarnessOptions = {},
  ) => {
    const clock = new ManualClock();
    /** Each state that the proxies could see. */
    const seen: string[] = [];
    const store = new MemoryStore({
      clock,
      onChange: () => void seen.push([...store.suspensions.content.suspensions.keys()].join(' and ')),
    });
    await store.suspensions.put(REQUEST);
    const suspensions = new FakeSuspensions();
    const source = new FakeSource({}, 'kubernetes');
    const world = await startControllerHarness(context, { clock, store, source, suspensions, ...options });
    const cutoffs = async (): Promise<readonly Suspension[]> => (await store.suspensions.read()).suspensions;
    return { ...world, suspensions, seen, cutoffs };
  };

  test('becomes a Suspension, and never lapses meanwhile', async (context) => {
    const { suspensions, cutoffs, advance, seen } = await start(context);
    await advance(2_000);
    assert.deepEqual([...suspensions.objects.keys()], ['tenant.shop']);
    assert.deepEqual(await cutoffs(), [REAL]);
    assert.deepEqual([...new Set(seen)], ['request-1', 'request-1 and uid-1', 'uid-1']);
  });

  test('also when it comes while the controller runs and nothing else happens', async (context) => {
    const { store, suspensions, cutoffs, advance } = await start(context);
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
    assert.ok((await cutoffs()).every(({ origin }) => origin.kind === 'kubernetes'));
  });

  test('stays in force until the API server is back', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isAway = true;
    const { cutoffs, advance } = await start(context, { suspensions });
    await advance(120_000);
    assert.deepEqual(await cutoffs(), [REQUEST]);
    suspensions.isAway = false;
    await advance(60_000);
    assert.deepEqual(await cutoffs(), [REAL]);
  });

  test('that a person lifts before that does not come back', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isAway = true;
    const { store, advance } = await start(context, { suspensions });
    await advance(60_000);
    await store.suspensions.remove(REQUEST.uid);
    suspensions.isAway = false;
    await advance(60_000);
    assert.equal(suspensions.objects.size, 0);
  });

  test('stays one of the store where no Suspension can be made', async (context) => {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock });
    await store.suspensions.put(REQUEST);
    const { advance } = await startControllerHarness(context, { clock, store });
    await advance(60_000);
    assert.deepEqual((await store.suspensions.read()).suspensions, [REQUEST]);
  });

  const found = async (context: Parameters<typeof startControllerHarness>[0], object: Partial<SuspensionObject>) => {
    const suspensions = new FakeSuspensions();
    const { name, target, message } = REQUEST;
    suspensions.objects.set(name, suspensionObject(name, { uid: 'uid-1', target, message, ...object }));
    const { cutoffs, advance } = await start(context, { suspensions });
    await advance(60_000);
    return (await cutoffs()).map(({ uid }) => uid);
  };

  test('adopts the Suspension of its name and target that is there already', async (context) => {
    assert.deepEqual(await found(context, {}), ['uid-1']);
    const newer = { createdAt: 1_700_000_000_500, until: 1_700_000_900_000 };
    assert.deepEqual(await found(context, newer), ['uid-1'], 'made later: another end is meant');
  });

  test('does not give way to one of another target, or that ends sooner or is over', async (context) => {
    assert.deepEqual(await found(context, { target: { kind: 'tenant', tenant: 'game' } }), ['request-1']);
    const older = { createdAt: 1_600_000_000_000, until: 1_700_000_900_000 };
    assert.deepEqual(await found(context, older), ['request-1']);
    assert.deepEqual(await found(context, { until: 1_600_000_000_000 }), ['request-1']);
  });
});

describe('a Suspension on an API server', () => {
  const { signal } = new AbortController();
  const answer = {
    metadata: { name: 'tenant.shop', uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { target: { type: 'Tenant', tenant: 'shop' }, message: 'Stop.', until: '2026-02-01T00:00:00.000Z' },
  };
  const withApi = (answerTo: (request: ApiRequest) => Json) => {
    const asked: ApiRequest[] = [];
    const api = {
      async request(request: ApiRequest): Promise<Json> {
        asked.push(request);
        return answerTo(request);
      },
    };
    return { asked, suspensions: new KubernetesSuspensionWriter({ api }) };
  };

  test('is created under the name of the cut-off', async () => {
    const { asked, suspensions } = withApi(() => answer);
    const until = Date.UTC(2026, 1, 1);
    const object = await suspensions.getOrCreate({ ...REQUEST, until }, signal);
    assert.deepEqual([object.uid, object.until, object.target], ['uid-1', until, REQUEST.target]);
    assert.deepEqual([asked[0]?.method, asked[0]?.path], ['POST', '/apis/weir.dev/v1alpha1/suspensions']);
    assert.deepEqual(asked[0]?.body, {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'Suspension',
      metadata: { name: 'tenant.shop' },
      spec: answer.spec,
    });
  });

  test('that is there already is read instead', async () => {
    const { asked, suspensions } = withApi(({ method }) => {
      if (method === 'POST') throw new KubeApiError('CONFLICT', 'already exists');
      return answer;
    });
    assert.equal((await suspensions.getOrCreate(REQUEST, signal)).uid, 'uid-1');
    assert.equal(asked[1]?.path, '/apis/weir.dev/v1alpha1/suspensions/tenant.shop');
  });
});
