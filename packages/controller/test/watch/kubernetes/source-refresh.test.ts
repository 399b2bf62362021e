import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { KubeApi } from '../../../src/kubernetes/kube-api.ts';
import { KubernetesSource } from '../../../src/watch/kubernetes/kubernetes-source.ts';

/**
 * Starts a source on an API server with one namespace. The namespace is named after the server's version at the time of the request.
 * Responses wait for `gate`.
 */
function startSource(context: TestContext, gate: Promise<void> = Promise.resolve()) {
  const server = { version: 1, gate, lists: [] as string[] };
  const api = {
    server: 'https://api.test',
    async request({ path }: { readonly path: string }) {
      server.lists.push(path);
      const version = String(server.version);
      const metadata = { name: `v${version}`, uid: `v${version}` };
      const items = path === '/api/v1/namespaces' ? [{ metadata }] : [];
      await server.gate;
      return { metadata: { resourceVersion: version }, items };
    },
    async watch({ signal, onOpen }: { readonly signal: AbortSignal; onOpen(): void }) {
      onOpen();
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
  const source = new KubernetesSource({
    api: api as unknown as KubeApi,
    clock: new ManualClock(),
    log: silentLogger(),
  });
  context.after(() => source.close());
  return { server, source, names: (): string[] => source.snapshot().namespaces.map(({ name }) => name) };
}

test('lists every kind again on refresh, even right after the first lists', async (context) => {
  const { server, source, names } = startSource(context);
  await source.synced(context.signal);
  const before = server.lists.splice(0);
  server.version = 2;
  await source.refresh(context.signal);
  assert.deepEqual(server.lists.sort(), before.sort());
  assert.deepEqual(names(), ['v2']);
});

test('does not count a list that began before the refresh as refreshed', async (context) => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { server, source, names } = startSource(context, first.promise);
  first.resolve();
  server.version = 2;
  server.gate = second.promise;
  const refreshed = source.refresh(context.signal).then(names);
  await source.synced(context.signal);
  await turn();
  assert.deepEqual(names(), ['v1']);
  second.resolve();
  assert.deepEqual(await refreshed, ['v2']);
});
