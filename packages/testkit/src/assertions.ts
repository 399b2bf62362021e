import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { diff } from 'node:util';

/**
 * Compares `actual` with a golden file: a string as text, any other value as indented JSON. `name` is a URL, or a path
 * relative to the running test file. With `UPDATE_GOLDEN=1`, writes `actual` to the file instead.
 */
export function golden(name: string | URL, actual: unknown): void {
  const path = goldenPath(name);
  const text = goldenText(actual);
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return;
  }
  assert.ok(existsSync(path), `${path} does not exist: run the test with UPDATE_GOLDEN=1 to write it`);
  const expected = readFileSync(path, 'utf8');
  if (text !== expected)
    assert.fail(
      `${path} differs (run the test with UPDATE_GOLDEN=1 to accept the change):\n${formatDiff(expected, text)}`,
    );
}

/**
 * Returns the path of a golden file. argv[1] is the test file, because `node --test` runs each test file in its own
 * process.
 */
function goldenPath(name: string | URL): string {
  return name instanceof URL ? fileURLToPath(name) : resolve(dirname(process.argv[1] ?? ''), name);
}

function goldenText(actual: unknown): string {
  const text = typeof actual === 'string' ? actual : JSON.stringify(actual, null, 2);
  return text.endsWith('\n') ? text : `${text}\n`;
}

const CONTEXT_LINES = 3;
const MAX_DIFF_LINES = 80;

/**
 * Formats a diff. Marks a missing line with `-` and an unexpected line with `+`. Omits lines that are more than
 * `CONTEXT_LINES` lines away from any difference.
 */
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
    shown.splice(MAX_DIFF_LINES, shown.length, `  … and ${shown.length - MAX_DIFF_LINES} more lines`);
  return shown.join('\n');
}

export type EventuallyOptions = { readonly timeoutMs?: number; readonly intervalMs?: number };

/**
 * Repeats `assertion` until it holds, and returns its result. After the timeout, throws the last failure. Use this function only for the
 * state of other processes, because they send no event to wait for: a status in the API server, or a key in Redis. Inside one process, wait
 * for the event.
 */
export async function eventually<T>(assertion: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeoutMs = 10_000, intervalMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= deadline) throw new Error(timeoutMessage(error, timeoutMs), { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

function timeoutMessage(error: unknown, timeoutMs: number): string {
  return `still failing after ${timeoutMs} ms: ${error instanceof Error ? error.message : String(error)}`;
}

/**
 * Freezes a value and everything it contains, so that a function that changes its input throws. A Map or Set can still
 * gain and lose entries. Returns the same value.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  // Returns a typed array unchanged: its content cannot be frozen, and Object.freeze would throw.
  if (ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  if (value instanceof Map || value instanceof Set) freezeCollection(value);
  for (const key of Reflect.ownKeys(value)) deepFreeze((value as Record<PropertyKey, unknown>)[key]);
  return value;
}

/** Freezes the keys and values of a Map or Set, which are not properties of the Map or Set. */
function freezeCollection(collection: Map<unknown, unknown> | Set<unknown>): void {
  for (const [key, value] of collection.entries()) {
    deepFreeze(key);
    deepFreeze(value);
  }
}
