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
  const api = {
    async request({ method, path, body }: KubeApiRequest): Promise<Json> {
      if (path.includes('/events/') && method === 'GET')
        throw new KubeApiError('NOT_FOUND', 'none', { missingName: 'event' });
      if (path.includes('/events/')) return {};
      const [, name = ''] = /services\/(.*)\/status/.exec(path) ?? [];
      if (name.startsWith('bad')) throw new KubeApiError('AWAY', 'failed calling webhook', { status: 500 });
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
  // Each call of `write` tries some Services that no earlier call has tried.
  status.setDesired({ kind: 'decided', views });
  for (let time = 0; time < 8; time += 1) await assert.rejects(status.write(signal), { code: 'AWAY' });
  assert.equal(writtenNames.size, COUNT);
  status.observe('late', rawOf('late'));
  status.setDesired({ kind: 'decided', views: [...views, view({ uid: 'late', name: 'late' })] });
  await assert.rejects(status.write(signal), { code: 'AWAY' });
  assert.ok(writtenNames.has('late'), 'a new Service is written at once');
});

function rawOf(name: string, status: RawService['status'] = {}): Json {
  const object = rawService(status) as unknown as RawService;
  return { ...object, metadata: { ...object.metadata, name, uid: name } };
}
