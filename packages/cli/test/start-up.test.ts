// A cut-off is urgent, so the command must not load what only `standalone`, `demo` or `doctor` need.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const PROGRAMS = ['main.ts', 'commands/suspend.ts'].map((path) => new URL(`../src/${path}`, import.meta.url));

test('loads only small packages before a command runs, and for a cut-off', () => {
  const packages = PROGRAMS.map((program) => packagesLoadedBy(program).filter((name) => !name.startsWith('node:')));
  assert.deepEqual(packages, [
    ['@weir/runtime/command-line', 'commander'],
    ['@weir/console/suspension-item', '@weir/model/duration', '@weir/runtime/command-line', 'commander'],
  ]);
});

test('does not load the WebSocket client of Node, which an import of node:http loads', () => {
  for (const program of PROGRAMS) assert.ok(!packagesLoadedBy(program).includes('node:http'), program.pathname);
});

/** Returns the packages, and the modules of Node, that a module imports statically, itself or through modules of its package. */
function packagesLoadedBy(program: URL): readonly string[] {
  const packages = new Set<string>();
  const modules = new Set<string>();
  const visit = (module: URL): void => {
    if (modules.has(module.href)) return;
    modules.add(module.href);
    for (const name of staticImports(readFileSync(module, 'utf8'))) {
      if (name.startsWith('.')) visit(new URL(name, module));
      else packages.add(name);
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
