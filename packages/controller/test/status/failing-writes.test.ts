// The API server answers 500 for a single object, for example if the object is too large for etcd, or if a webhook of its namespace
// is down.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { type RawService, rawService, view } from '../fixtures/views.ts';

const COUNT = 40;

test('writes all other Services, however many Services fail', async () => {
  const writtenNames = new Set<string>();
  let attempts = 0;
  let isBroken = true;
  const api = {
    async request({ method, path, body }: KubeApiRequest): Promise<Json> {
      if (path.includes('/events/') && method === 'GET')
        throw new KubeApiError('NOT_FOUND', 'none', { missingName: 'event' });
      if (path.includes('/events/')) return {};
      const [, name = ''] = /services\/(.*)\/status/.exec(path) ?? [];
      if (name.startsWith('bad') && isBroken) {
        attempts += 1;
        throw new KubeApiError('AWAY', 'failed calling webhook', { status: 500 });
      }
      writtenNames.add(name);
      return rawOf(name, (body as unknown as Pick<RawService, 'status'>).status);
    },
  };
  const [clock, log] = [new ManualClock(), silentLogger()];
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  const names = ['bad', 'good'].flatMap((kind) => Array.from({ length: COUNT }, (_, index) => `${kind}${index}`));
  for (const name of names) status.observe(name, rawOf(name));
  const views = names.map((name) => view({ uid: name, name }));
  const { signal } = new AbortController();
  status.setDesired({ kind: 'decided', views });
  assert.equal(await status.write(signal), 'recheck');
  assert.equal(writtenNames.size, COUNT, 'in one pass');
  assert.equal(attempts, COUNT);
  status.observe('late', rawOf('late'));
  status.setDesired({ kind: 'decided', views: [...views, view({ uid: 'late', name: 'late' })] });
  assert.equal(await status.write(signal), 'recheck');
  assert.ok(writtenNames.has('late'), 'a new Service is written at once');
  assert.equal(attempts, COUNT, 'no retry within a second');
  for (let second = 0; second < 600; second += 1) {
    await clock.advance(1_000);
    await status.write(signal);
  }
  assert.ok(
    attempts > 10 * COUNT && attempts < 20 * COUNT,
    'each failure doubles the time to the next attempt, up to a minute',
  );
  isBroken = false;
  await clock.advance(60_000);
  assert.equal(await status.write(signal), 'complete');
  assert.equal(writtenNames.size, 2 * COUNT + 1);
});

function rawOf(name: string, status: RawService['status'] = {}): Json {
  const object = rawService(status) as unknown as RawService;
  return { ...object, metadata: { ...object.metadata, name, uid: name } };
}
