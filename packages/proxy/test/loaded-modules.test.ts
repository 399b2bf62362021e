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

// The worker's test comes first: a module is loaded only once, so a later test would not find it in `loaded`.
test('a worker loads nothing that only the main thread needs', async () => {
  await import('../src/worker/run-worker.ts');
  assert.notEqual(loadedOf('model').length, 0);
  assert.deepEqual(loadedOf('store', 'ioredis', 'pino', 'prom-client', 'undici'), []);
  // Of the package runtime, a worker needs only the modules that decrypt private keys.
  const names = loadedOf('runtime').map((url) => url.replace(/^.*\//, ''));
  assert.deepEqual(names.sort(), ['sealer.ts', 'sealing.ts', 'secret.ts']);
  // The worker loads `node:tls` only for the first client whose TLS it terminates.
  assert.ok(!loaded.includes('node:tls'));
});

test('a start loads neither the metrics library nor an HTTP client, not even that of Node', async () => {
  await import('../src/supervisor/start-proxy.ts');
  assert.notEqual(loadedOf('runtime').length, 0);
  assert.deepEqual(loadedOf('prom-client', 'undici'), []);
  // An import of `node:http` would load an HTTP client; `process.getBuiltinModule` does not.
  assert.ok(!loaded.includes('node:http'));
});
