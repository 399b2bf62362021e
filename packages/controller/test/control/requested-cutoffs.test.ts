import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Cutoff, SuspensionObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { createMemoryStore } from '@weir/store';
import { ApiError } from '../../src/kubernetes/api-error.ts';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { KubernetesSuspensions } from '../../src/suspension/kubernetes-suspensions.ts';
import type { SuspensionWriter } from '../../src/suspension/suspension-writer.ts';
import { FakeSource, suspensionObject } from '../fixtures/fake-source.ts';
import { startWorld, type WorldOptions } from '../fixtures/world.ts';

const REQUEST: Cutoff = {
  uid: 'request-1',
  name: 'tenant.shop',
  target: { kind: 'tenant', tenant: 'shop' },
  message: 'Stop.',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: 1_700_000_000_000,
};

const REAL: Cutoff = { ...REQUEST, uid: 'uid-1', origin: { kind: 'kubernetes' } };

/** Keeps Suspensions by name, as an API server does. */
class FakeSuspensions implements SuspensionWriter {
  readonly objects = new Map<string, SuspensionObject>();
  isAway = false;

  async make({ name, target, message, until, createdAt }: Cutoff): Promise<SuspensionObject> {
    if (this.isAway) throw new ApiError('AWAY', 'refused');
    const found = this.objects.get(name);
    if (found !== undefined) return found;
    const object = suspensionObject(name, { uid: 'uid-1', target, message, until, createdAt });
    this.objects.set(name, object);
    return object;
  }

  async remove({ name }: Cutoff): Promise<void> {
    this.objects.delete(name);
  }
}

describe('a cut-off that was made in the store while the API server was away', () => {
  const start = async (context: Parameters<typeof startWorld>[0], options: WorldOptions = {}) => {
    const clock = new ManualClock();
    /** Each state that the proxies could see. */
    const seen: string[] = [];
    const store = createMemoryStore({
      clock,
      onChange: () => void seen.push([...store.cutoffs.content.cutoffs.keys()].join(' and ')),
    });
    await store.cutoffs.put(REQUEST);
    const suspensions = new FakeSuspensions();
    const source = new FakeSource({}, 'kubernetes');
    const world = await startWorld(context, { clock, store, source, suspensions, ...options });
    const cutoffs = async (): Promise<readonly Cutoff[]> => (await store.cutoffs.read()).cutoffs;
    return { ...world, suspensions, seen, cutoffs };
  };

  test('becomes a Suspension, and never lapses meanwhile', async (context) => {
    const { suspensions, cutoffs, pass, seen } = await start(context);
    await pass(2_000);
    assert.deepEqual([...suspensions.objects.keys()], ['tenant.shop']);
    assert.deepEqual(await cutoffs(), [REAL]);
    assert.deepEqual([...new Set(seen)], ['request-1', 'request-1 and uid-1', 'uid-1']);
  });

  test('also when it comes while the controller runs and nothing else happens', async (context) => {
    const { store, suspensions, cutoffs, pass } = await start(context);
    await pass(2_000);
    const second: Cutoff = {
      ...REQUEST,
      uid: 'request-2',
      name: 'tenant.game',
      target: { kind: 'tenant', tenant: 'game' },
    };
    await store.cutoffs.put(second);
    await pass(2_000);
    assert.ok(suspensions.objects.has('tenant.game'));
    assert.ok((await cutoffs()).every(({ origin }) => origin.kind === 'kubernetes'));
  });

  test('stays in force until the API server is back', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isAway = true;
    const { cutoffs, pass } = await start(context, { suspensions });
    await pass(120_000);
    assert.deepEqual(await cutoffs(), [REQUEST]);
    suspensions.isAway = false;
    await pass(60_000);
    assert.deepEqual(await cutoffs(), [REAL]);
  });

  test('that a person lifts before that does not come back', async (context) => {
    const suspensions = new FakeSuspensions();
    suspensions.isAway = true;
    const { store, pass } = await start(context, { suspensions });
    await pass(60_000);
    await store.cutoffs.remove(REQUEST.uid);
    suspensions.isAway = false;
    await pass(60_000);
    assert.equal(suspensions.objects.size, 0);
  });

  test('stays one of the store where no Suspension can be made', async (context) => {
    const clock = new ManualClock();
    const store = createMemoryStore({ clock });
    await store.cutoffs.put(REQUEST);
    const { pass } = await startWorld(context, { clock, store });
    await pass(60_000);
    assert.deepEqual((await store.cutoffs.read()).cutoffs, [REQUEST]);
  });

  const found = async (context: Parameters<typeof startWorld>[0], object: Partial<SuspensionObject>) => {
    const suspensions = new FakeSuspensions();
    const { name, target, message } = REQUEST;
    suspensions.objects.set(name, suspensionObject(name, { uid: 'uid-1', target, message, ...object }));
    const { cutoffs, pass } = await start(context, { suspensions });
    await pass(60_000);
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
    return { asked, suspensions: new KubernetesSuspensions({ api }) };
  };

  test('is created under the name of the cut-off', async () => {
    const { asked, suspensions } = withApi(() => answer);
    const until = Date.UTC(2026, 1, 1);
    const object = await suspensions.make({ ...REQUEST, until }, signal);
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
      if (method === 'POST') throw new ApiError('CONFLICT', 'already exists');
      return answer;
    });
    assert.equal((await suspensions.make(REQUEST, signal)).uid, 'uid-1');
    assert.equal(asked[1]?.path, '/apis/weir.dev/v1alpha1/suspensions/tenant.shop');
  });
});
