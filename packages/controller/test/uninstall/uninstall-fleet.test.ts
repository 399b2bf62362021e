import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { uninstallFleet } from '../../src/uninstall/uninstall-fleet.ts';

const DEPLOYMENT = { namespace: 'weir-system', name: 'weir-controller' };
/** A Service with a status that the fleet has written. */
const SERVICE = {
  metadata: {
    uid: 'u',
    namespace: 'shop',
    name: 'web',
    resourceVersion: '1',
    managedFields: [{ manager: 'weir-controller', subresource: 'status' }],
  },
  spec: { type: 'LoadBalancer' },
  status: { conditions: [{ type: 'weir.dev/Programmed', status: 'True' }] },
};

interface Uninstall {
  readonly done: Promise<void>;
  readonly clock: ManualClock;
  readonly messages: readonly string[];
  /** The number of times that the Services were listed. */
  lists(): number;
}

/**
 * Uninstalls a fleet with one Service. `failureOf` returns the error of the nth write of the Service's status; undefined if the write
 * succeeds.
 */
function startUninstall(failureOf: (write: number) => KubeApiError | undefined): Uninstall {
  const clock = new ManualClock();
  const messages: string[] = [];
  const destination = { write: (line: string) => void messages.push(JSON.parse(line).msg) };
  let lists = 0;
  let writes = 0;
  let hasStatus = true;
  const request = async ({ method, path }: KubeApiRequest): Promise<Json> => {
    if (method === 'GET' && path === '/api/v1/services') {
      lists += 1;
      return { items: hasStatus ? [SERVICE] : [] };
    }
    if (path.endsWith('/services/web/status')) {
      writes += 1;
      const error = failureOf(writes);
      if (error !== undefined) throw error;
      hasStatus = false;
      return {};
    }
    throw new KubeApiError('NOT_FOUND', `${method} ${path}`);
  };
  const done = uninstallFleet({
    api: { request },
    fleet: 'weir',
    loadBalancerClass: 'weir.dev/weir',
    deployment: DEPLOYMENT,
    namespace: DEPLOYMENT.namespace,
    store: undefined,
    clock,
    log: createLogger({ name: 'uninstall', level: 'info', destination }),
    signal: new AbortController().signal,
  });
  return { done, clock, messages, lists: () => lists };
}

test('warns instead of reporting stopped controllers if the Deployment does not exist', async () => {
  const { done, messages } = startUninstall(() => undefined);
  await done;
  assert.ok(messages.includes('found no Deployment of this name; no controllers were stopped'));
  assert.ok(!messages.includes('controllers stopped'));
});

test('reads Services again after a pause if they changed during the write', async () => {
  const { done, clock, lists } = startUninstall((write) =>
    write < 3 ? new KubeApiError('CONFLICT', 'changed') : undefined,
  );
  await clock.advance(99);
  assert.equal(lists(), 1);
  await clock.advance(10_000);
  await done;
  // Three passes for the status, and one pass for the finalizers.
  assert.equal(lists(), 3 + 1);
});

test('writes again if a write fails at the API server', async () => {
  const { done, clock, lists } = startUninstall((write) =>
    write < 3 ? new KubeApiError('AWAY', 'a webhook does not answer', { status: 500 }) : undefined,
  );
  await clock.advance(10_000);
  await done;
  assert.equal(lists(), 3 + 1);
});

test('fails after five passes if a Service changes all the time', async () => {
  const { done, clock, lists } = startUninstall(() => new KubeApiError('CONFLICT', 'changed'));
  const failed = assert.rejects(done, /failed to remove the status of Services: 1 objects still have fields/);
  await clock.advance(60_000);
  await failed;
  assert.equal(lists(), 5);
  assert.equal(clock.pendingTimers, 0);
});

test('fails at once if a write is refused', async () => {
  const { done, lists } = startUninstall(() => new KubeApiError('FORBIDDEN', 'no'));
  await assert.rejects(done, /failed to remove the status of Services: 1 objects still have fields/);
  assert.equal(lists(), 1);
});
