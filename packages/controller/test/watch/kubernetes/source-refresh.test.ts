// What is read before a moment may be older than it, however short before.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { KubeApi } from '../../../src/kubernetes/kube-api.ts';
import { KubernetesSource } from '../../../src/watch/kubernetes/kubernetes-source.ts';

/** Lists a namespace that is called by the version that the API server had when it was asked; it answers once `answers` resolves. */
function startSource(context: TestContext, answers: Promise<void> = Promise.resolve()) {
  const world = { version: 1, answers, lists: [] as string[] };
  const api = {
    server: 'https://api.test',
    async request({ path }: { readonly path: string }) {
      world.lists.push(path);
      const version = String(world.version);
      const metadata = { name: `v${version}`, uid: `v${version}` };
      const items = path === '/api/v1/namespaces' ? [{ metadata }] : [];
      await world.answers;
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
  return { world, source, names: (): string[] => source.snapshot().namespaces.map(({ name }) => name) };
}

test('a source that is refreshed reads everything again, also when it has just read it', async (context) => {
  const { world, source, names } = startSource(context);
  await source.synced(context.signal);
  const before = world.lists.splice(0);
  world.version = 2;
  await source.refresh(context.signal);
  assert.deepEqual(world.lists.sort(), before.sort());
  assert.deepEqual(names(), ['v2']);
});

test('a list that began before the refresh and is answered in its first moment is not taken for newer', async (context) => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { world, source, names } = startSource(context, first.promise);
  first.resolve();
  world.version = 2;
  world.answers = second.promise;
  const refreshed = source.refresh(context.signal).then(names);
  await source.synced(context.signal);
  await turn();
  assert.deepEqual(names(), ['v1']);
  second.resolve();
  assert.deepEqual(await refreshed, ['v2']);
});
