// Pages that list what the code has are only worth reading while they list all of it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** The members of the unions and lists of string literals in these files. */
function codesIn(paths: readonly string[]): Set<string> {
  const literal = /^\s+'([A-Z]\w+)',$|(?<![=!])[|=] '([A-Z]\w+)'|[[,] ?'([A-Z]\w+)'(?=[,\]])/gm;
  const texts = paths.flatMap((path) => [...read(path).matchAll(literal)]);
  return new Set(texts.map(([, listed, inline, among]) => listed ?? inline ?? among ?? ''));
}

const CODES = [
  'packages/model/src/problem.ts',
  'packages/model/src/reason.ts',
  'packages/runtime/src/errors.ts',
  'packages/store/src/errors.ts',
  'packages/controller/src/kubernetes/kube-api-error.ts',
  'packages/console/src/api/api-error.ts',
  'packages/console/src/fleet/problems.ts',
  'packages/cli/src/client/console-client.ts',
];

test('docs/errors.md lists every code of the program, and no other', () => {
  const page = read('docs/errors.md');
  const listed = new Set(
    [...page.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, code]) => code),
    ),
  );
  const known = codesIn(CODES);
  // What says that all is well needs no page.
  for (const fine of ['Accepted', 'Programmed']) known.delete(fine);
  assert.ok(known.size > 40, `only ${known.size} codes were found in the sources`);
  assert.deepEqual(
    [...known].filter((code) => !listed.has(code)),
    [],
  );
  assert.deepEqual(
    [...listed].filter((code) => !known.has(code ?? '')),
    [],
  );
});

test('docs/errors.md says of every reason of a refusal what it means', () => {
  const [, section = ''] = read('docs/errors.md').split('## Why a client was refused');
  const rows = section.split('\n## ')[0]?.matchAll(/^\| (`[^|]+)\|/gm) ?? [];
  const listed = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, reason]) => reason));
  const [, refusals = ''] = read('packages/proxy/src/metering/outcome.ts').split(/REFUSAL_OUTCOMES = |\] as const/);
  const known = [...refusals.matchAll(/'([a-z-]+)'/g)].map(([, reason]) => reason);
  assert.ok(known.length > 10, `only ${known.length} reasons were found in the sources`);
  assert.deepEqual(listed, known);
});

test('docs/operating.md lists every setting of the processes, and no other', () => {
  const paths = [
    'store/src/redis/redis-settings.ts',
    'controller/src/main.ts',
    'controller/src/config/secret-settings.ts',
    'proxy/src/main.ts',
    'console/src/main.ts',
  ];
  const mains = paths.map((path) => read(`packages/${path}`)).join('\n');
  const known = new Set([...mains.matchAll(/'(WEIR_\w+)'/g)].map(([, name]) => name));
  const listed = new Set([...read('docs/operating.md').matchAll(/^\| `(WEIR_\w+)`/gm)].map(([, name]) => name));
  assert.deepEqual([...listed].sort(), [...known].sort());
});
