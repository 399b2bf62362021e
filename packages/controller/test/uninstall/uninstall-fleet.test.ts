import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { uninstallFleet } from '../../src/uninstall/uninstall-fleet.ts';

const DEPLOYMENT = { namespace: 'weir-system', name: 'weir-controller' };
/** What a fleet has said of a Service. */
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

interface Retiring {
  readonly done: Promise<void>;
  readonly clock: ManualClock;
  readonly messages: readonly string[];
  /** How often the Services were listed. */
  lists(): number;
}

/** With one Service, whose status is written as `answer` says. */
function retiring(answer: (write: number) => KubeApiError | undefined): Retiring {
  const clock = new ManualClock();
  const messages: string[] = [];
  const destination = { write: (line: string) => void messages.push(JSON.parse(line).msg) };
  let lists = 0;
  let writes = 0;
  let isSaid = true;
  const request = async ({ method, path }: ApiRequest): Promise<Json> => {
    if (method === 'GET' && path === '/api/v1/services') {
      lists += 1;
      return { items: isSaid ? [SERVICE] : [] };
    }
    if (path.endsWith('/services/web/status')) {
      writes += 1;
      const error = answer(writes);
      if (error !== undefined) throw error;
      isSaid = false;
      return {};
    }
    throw new KubeApiError('NOT_FOUND', `${method} ${path}: there is none`);
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

test('a Deployment that is not there has not been stopped', async () => {
  const { done, messages } = retiring(() => undefined);
  await done;
  assert.ok(messages.includes('found no Deployment of this name; no controllers were stopped'));
  assert.ok(!messages.includes('controllers stopped'));
});

test('what was changed meanwhile is read again after a pause, and that a few times', async () => {
  const { done, clock, lists } = retiring((write) => (write < 3 ? new KubeApiError('CONFLICT', 'changed') : undefined));
  await clock.advance(99);
  assert.equal(lists(), 1);
  await clock.advance(10_000);
  await done;
  // The third write was taken; and once they are listed for finalizers.
  assert.equal(lists(), 3 + 1);
});

test('it does not go on for ever against somebody who changes a Service all the time', async () => {
  const { done, clock, lists } = retiring(() => new KubeApiError('CONFLICT', 'changed'));
  const failed = assert.rejects(done, /failed to remove the status of Services: 1 objects still have fields/);
  await clock.advance(60_000);
  await failed;
  assert.equal(lists(), 5);
  assert.equal(clock.pendingTimers, 0);
});

test('what is refused is not asked again', async () => {
  const { done, lists } = retiring(() => new KubeApiError('FORBIDDEN', 'no'));
  await assert.rejects(done, /failed to remove the status of Services: 1 objects still have fields/);
  assert.equal(lists(), 1);
});
