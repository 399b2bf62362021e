// What is read before a moment may be older than it, however short before.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { openKubernetesSource } from '../../src/watch/kubernetes/kubernetes-source.ts';

test('a source that is refreshed reads everything again, also when it has just read it', async (context) => {
  let version = 1;
  const lists: string[] = [];
  const api = {
    server: 'https://api.test',
    async request({ path }: { readonly path: string }) {
      lists.push(path);
      const metadata = { name: `v${version}`, uid: `v${version}` };
      const items = path === '/api/v1/namespaces' ? [{ metadata }] : [];
      return { metadata: { resourceVersion: String(version) }, items };
    },
    async watch({ signal, onOpen }: { readonly signal: AbortSignal; onOpen(): void }) {
      onOpen();
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
  const source = openKubernetesSource({
    api: api as unknown as KubeApi,
    clock: new ManualClock(),
    log: silentLogger(),
  });
  context.after(() => source.close());
  await source.synced(context.signal);
  const before = lists.splice(0);
  version = 2;
  await source.refresh(context.signal);
  assert.deepEqual(lists.sort(), before.sort());
  assert.deepEqual(
    source.snapshot().namespaces.map(({ name }) => name),
    ['v2'],
  );
});
