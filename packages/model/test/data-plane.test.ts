import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import test from 'node:test';

/** Modules that translate snapshots, build views or parse annotations. Proxies need none of these modules. */
const NOT_FOR_PROXIES = /\/packages\/model\/(?:dist\/)?src\/(?:index\.|translate\/|view\/|settings\/)/;

test('data-plane.ts loads no module that only controllers or consoles use', async () => {
  const loaded: string[] = [];
  const hooks = registerHooks({
    load(url, context, nextLoad) {
      loaded.push(url);
      return nextLoad(url, context);
    },
  });
  const door = await import('@weir/model/data-plane');
  hooks.deregister();

  assert.equal(typeof door.createMatcher, 'function');
  assert.ok(loaded.some((url) => url.includes('/match/matcher.')));
  assert.deepEqual(
    loaded.filter((url) => NOT_FOR_PROXIES.test(url)),
    [],
  );
});
