// The rules of the house are only worth something while they fail: each is broken once, in a copy.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';

const root = fileURLToPath(new URL('../../', import.meta.url));
const CONFIG_FILES = ['biome.json', 'biome', '.gitignore', 'package.json'];

const VIOLATIONS: readonly {
  readonly what: string;
  readonly path: string;
  readonly code: string;
  readonly rule: string;
}[] = [
  {
    what: 'a room that imports a neighbour which its package.json does not name',
    path: 'packages/proxy/src/breach.ts',
    code: "import { startConsole } from '@weir/console';\n\nexport const breach: unknown = startConsole;\n",
    rule: 'noUndeclaredDependencies',
  },
  {
    what: 'a model that reads a file',
    path: 'packages/model/src/breach.ts',
    code: "import { readFileSync } from 'node:fs';\n\nexport const breach: unknown = readFileSync;\n",
    rule: 'noNodejsModules',
  },
  {
    what: 'a model that looks at the clock',
    path: 'packages/model/src/breach.ts',
    code: 'export const breach: number = Date.now();\n',
    rule: 'noRestrictedGlobals',
  },
  {
    what: 'a model that throws dice',
    path: 'packages/model/src/breach.ts',
    code: 'export const breach: number = Math.random();\n',
    rule: 'model is pure: take `random` as an argument',
  },
  {
    what: 'a promise that nobody waits for',
    path: 'packages/store/src/breach.ts',
    code: 'export function breach(): void {\n  Promise.resolve(1);\n}\n',
    rule: 'noFloatingPromises',
  },
];

for (const { what, path, code, rule } of VIOLATIONS) {
  test(`lint refuses ${what}`, async (t) => {
    const copy = temporaryDirectory('house');
    t.after(() => copy.close());
    const folder = path.split('/').slice(0, 2).join('/');
    for (const part of [...CONFIG_FILES, `${folder}/package.json`]) {
      mkdirSync(dirname(join(copy.path, part)), { recursive: true });
      cpSync(join(root, part), join(copy.path, part), { recursive: true });
    }
    mkdirSync(dirname(join(copy.path, path)), { recursive: true });
    writeFileSync(join(copy.path, path), code);
    const lint = await spawnProcess({
      command: process.execPath,
      args: [join(root, 'node_modules/@biomejs/biome/bin/biome'), 'lint', '--colors=off', path],
      cwd: copy.path,
      mayExit: true,
    });
    const { code: exitCode } = await lint.exited;
    assert.equal(exitCode, 1, lint.output());
    assert.ok(lint.output().includes(rule), lint.output());
  });
}
