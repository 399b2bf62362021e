import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { diff } from 'node:util';

/**
 * Compares with the text of a file: strings as they are (YAML, say), anything else as indented JSON. `name` is a URL, or a path
 * relative to the test file that is running. `UPDATE_GOLDEN=1` writes the file instead.
 */
export function golden(name: string | URL, actual: unknown): void {
  const path = goldenPath(name);
  const text = goldenText(actual);
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return;
  }
  assert.ok(existsSync(path), `${path} does not exist; UPDATE_GOLDEN=1 writes it`);
  const expected = readFileSync(path, 'utf8');
  if (text !== expected) assert.fail(`${path} differs (UPDATE_GOLDEN=1 accepts it):\n${formatDiff(expected, text)}`);
}

/** node --test runs each test file as a process of its own, with the file as its script. */
function goldenPath(name: string | URL): string {
  return name instanceof URL ? fileURLToPath(name) : resolve(dirname(process.argv[1] ?? ''), name);
}

function goldenText(actual: unknown): string {
  const text = typeof actual === 'string' ? actual : JSON.stringify(actual, null, 2);
  return text.endsWith('\n') ? text : `${text}\n`;
}

const CONTEXT_LINES = 3;
const MAX_DIFF_LINES = 80;

/** `-` is expected and not there, `+` is there and not expected; lines far from any difference are left out. */
function formatDiff(expected: string, actual: string): string {
  const lines = diff(actual.split('\n'), expected.split('\n'));
  const changed = lines.flatMap(([operation], index) => (operation === 0 ? [] : [index]));
  const near = (index: number): boolean => changed.some((each) => Math.abs(each - index) <= CONTEXT_LINES);
  const shown: string[] = [];
  let skipping = false;
  for (const [index, [operation, line]] of lines.entries()) {
    if (!near(index)) {
      if (!skipping) shown.push('  …');
      skipping = true;
      continue;
    }
    skipping = false;
    shown.push(`${operation === 0 ? ' ' : operation === 1 ? '+' : '-'} ${line}`);
  }
  if (shown.length > MAX_DIFF_LINES)
    shown.splice(MAX_DIFF_LINES, shown.length, `  … and ${shown.length - MAX_DIFF_LINES} lines more`);
  return shown.join('\n');
}
