// A cut-off is urgent, so the command must not load what only `standalone`, `demo` or `doctor` need.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

test('loads only small packages before a command runs, and for a cut-off', () => {
  const packages = ['main.ts', 'commands/suspend.ts'].map((path) =>
    packagesLoadedBy(new URL(`../src/${path}`, import.meta.url)),
  );
  assert.deepEqual(packages, [
    ['@weir/runtime', 'commander'],
    ['@weir/console/suspension-item', '@weir/model/data-plane', '@weir/runtime', 'commander'],
  ]);
});

/** Returns the packages that a module imports statically, itself or through modules of its package, without modules of Node. */
function packagesLoadedBy(program: URL): readonly string[] {
  const packages = new Set<string>();
  const modules = new Set<string>();
  const visit = (module: URL): void => {
    if (modules.has(module.href)) return;
    modules.add(module.href);
    for (const name of staticImports(readFileSync(module, 'utf8'))) {
      if (name.startsWith('.')) visit(new URL(name, module));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  };
  visit(program);
  return [...packages].sort();
}

/** Returns the specifiers of the static imports and exports, without those that only name types. */
function staticImports(source: string): readonly string[] {
  const statements = source.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';/gm);
  return [...statements].map(([, name = '']) => name);
}
