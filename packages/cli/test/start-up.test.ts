// A cut-off is urgent, so `weir suspend` must load neither the modules of other commands nor Node's WebSocket client.
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

test('weir suspend loads only the modules that it needs', async () => {
  await import('../src/run-weir.ts');
  await import('../src/commands/suspend.ts');
  assert.deepEqual(namesOf(/\/node_modules\/([^/]+)\//), ['commander']);
  assert.deepEqual(namesOf(/\/packages\/model\/src\/(.+)/), [
    'cut-off.ts',
    'duration.ts',
    'suspension.ts',
    'usage/period.ts',
  ]);
  assert.deepEqual(namesOf(/\/packages\/runtime\/src\/(.+)/), [
    'command-line.ts',
    'config/addresses.ts',
    'config/parse-config.ts',
    'errors.ts',
    'process/exit-status.ts',
    'process/package-version.ts',
  ]);
  assert.deepEqual(namesOf(/\/packages\/cli\/src\/commands\/(.+)/), ['local-suspend.ts', 'suspend.ts']);
  assert.ok(!loaded.includes('node:crypto'));
  // An import would evaluate all exports of `node:http`, and the export `WebSocket` loads an HTTP client.
  assert.ok(!loaded.includes('node:http'));
});

/** Returns the names that `pattern` captures in the URLs of the loaded modules, each name once. */
function namesOf(pattern: RegExp): readonly string[] {
  return [...new Set(loaded.flatMap((url) => pattern.exec(url)?.[1] ?? []))].sort();
}
