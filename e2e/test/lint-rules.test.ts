// Breaks each lint rule of the project once in a copy, and tests that the linter reports the violation.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';

const root = fileURLToPath(new URL('../../', import.meta.url));
const CONFIG_FILES = ['biome.json', 'biome', '.gitignore', 'package.json'];

const VIOLATIONS: readonly {
  readonly violation: string;
  readonly path: string;
  readonly code: string;
  readonly rule: string;
}[] = [
  {
    violation: 'an import of a package that package.json does not list',
    path: 'packages/proxy/src/violation.ts',
    code: "import { startConsole } from '@weir/console';\n\nexport const violation: unknown = startConsole;\n",
    rule: 'noUndeclaredDependencies',
  },
  {
    violation: 'file access in model',
    path: 'packages/model/src/violation.ts',
    code: "import { readFileSync } from 'node:fs';\n\nexport const violation: unknown = readFileSync;\n",
    rule: 'noNodejsModules',
  },
  {
    violation: 'use of the clock in model',
    path: 'packages/model/src/violation.ts',
    code: 'export const violation: number = Date.now();\n',
    rule: 'noRestrictedGlobals',
  },
  {
    violation: 'random numbers in model',
    path: 'packages/model/src/violation.ts',
    code: 'export const violation: number = Math.random();\n',
    rule: 'model is pure: take `random` as an argument',
  },
  {
    violation: 'a floating promise',
    path: 'packages/store/src/violation.ts',
    code: 'export function violation(): void {\n  Promise.resolve(1);\n}\n',
    rule: 'noFloatingPromises',
  },
];

for (const { violation, path, code, rule } of VIOLATIONS) {
  test(`lint reports ${violation}`, async (t) => {
    const copy = temporaryDirectory('lint-rules');
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
