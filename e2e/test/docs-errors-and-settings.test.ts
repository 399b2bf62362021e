// Tests that the reference pages list exactly what the code defines.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** Returns the error codes in these files: the string literals in unions and lists. */
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

/** Returns the codes on a page: in the first cells of table rows and in the headings of level three. */
function codesOnPage(page: string): string[] {
  const cells = [...page.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = '']) => cell);
  const headings = [...page.matchAll(/^### (\w+)$/gm)].map(([, heading = '']) => heading);
  return [...cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, code = '']) => code)), ...headings];
}

test('docs/errors.md and docs/reasons.md list exactly the codes of the sources, each once', () => {
  const listed = [...codesOnPage(read('docs/errors.md')), ...codesOnPage(read('docs/reasons.md'))];
  const known = codesIn(CODES);
  assert.ok(known.size > 40, `only ${known.size} codes were found in the sources`);
  assert.deepEqual(listed.sort(), [...known].sort());
});

test('docs/errors.md explains every refusal outcome', () => {
  const [, section = ''] = read('docs/errors.md').split('## Why a client was refused');
  const rows = section.split('\n## ')[0]?.matchAll(/^\| (`[^|]+)\|/gm) ?? [];
  const listed = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, reason]) => reason));
  const [, refusals = ''] = read('packages/proxy/src/metering/outcome.ts').split(/REFUSAL_OUTCOMES = |\] as const/);
  const known = [...refusals.matchAll(/'([a-z-]+)'/g)].map(([, reason]) => reason);
  assert.ok(known.length > 10, `only ${known.length} reasons were found in the sources`);
  assert.deepEqual(listed, known);
});

test('docs/errors.md explains every reason for which the proxy answers a request, with the status', () => {
  const [, section = ''] = read('docs/errors.md').split('## Why the proxy answered a request');
  const rows = section.split('\n## ')[0]?.matchAll(/^\| (\d+) \| `([a-z-]+)` \|/gm) ?? [];
  const known = [...read('packages/proxy/src/http/passes/error-answer.ts').matchAll(STATUS_OF_REASON)];
  assert.ok(known.length > 20, `only ${known.length} reasons were found in the sources`);
  assert.deepEqual(
    [...rows].map(([, status, reason]) => [reason, status]),
    known.map(([, reason, status]) => [reason, status]),
  );
});

/** An entry of `ERROR_REASONS`, on one line or on several. */
const STATUS_OF_REASON = /^ {2}'?([a-z-]+)'?: \{\s+status: (\d+),/gm;

test('docs/settings.md lists exactly the settings of the processes', () => {
  const paths = [
    'store/src/redis/redis-settings.ts',
    'controller/src/main.ts',
    'controller/src/config/secret-settings.ts',
    'proxy/src/main.ts',
    'console/src/main.ts',
  ];
  const mains = paths.map((path) => read(`packages/${path}`)).join('\n');
  const known = new Set([...mains.matchAll(/'(WEIR_\w+)'/g)].map(([, name]) => name));
  const listed = new Set([...read('docs/settings.md').matchAll(/^\| `(WEIR_\w+)`/gm)].map(([, name]) => name));
  assert.deepEqual([...listed].sort(), [...known].sort());
});
