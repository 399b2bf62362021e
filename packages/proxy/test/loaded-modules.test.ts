import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { test } from 'node:test';

const loaded: string[] = [];
registerHooks({
  load(url, context, nextLoad) {
    loaded.push(url);
    return nextLoad(url, context);
  },
});

const loadedOf = (...packages: readonly string[]): string[] =>
  loaded.filter((url) =>
    packages.some((each) => url.includes(`/packages/${each}/`) || url.includes(`/node_modules/${each}/`)),
  );

// The worker first: what it has loaded is not loaded again for the main thread.
test('a worker loads nothing that only the main thread needs', async () => {
  await import('../src/worker/run-worker.ts');
  assert.notEqual(loadedOf('model').length, 0);
  assert.deepEqual(loadedOf('store', 'ioredis', 'pino', 'prom-client', 'undici'), []);
  // What opens private keys, and nothing else of it.
  const names = loadedOf('runtime').map((url) => url.replace(/^.*\//, ''));
  assert.deepEqual(names.sort(), ['sealer.ts', 'sealing.ts', 'secret.ts']);
  // Which the first client whose TLS ends here brings.
  assert.ok(!loaded.includes('node:tls'));
});

test('a start loads neither the library for metrics nor an HTTP client, that of Node included', async () => {
  await import('../src/supervisor/start-proxy.ts');
  assert.notEqual(loadedOf('runtime').length, 0);
  assert.deepEqual(loadedOf('prom-client', 'undici'), []);
  // Which comes with an import of it, but not with `process.getBuiltinModule`.
  assert.ok(!loaded.includes('node:http'));
});
