import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, createReadStream, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MODULE = fileURLToPath(new URL('../../src/process/line-output.ts', import.meta.url));
/** Far more than a pipe holds. */
const BYTES = 2_000_000;
const SCRIPT = `
  const { standardOutput } = await import(${JSON.stringify(MODULE)});
  const written = standardOutput().write(Buffer.alloc(${BYTES}, 'a')).then(() => console.error('written'));
  const end = standardOutput().write(Buffer.from('b'));
  console.error('not blocked');
  if (process.argv[1] === 'exit') setImmediate(() => process.exit(7));
  await end;
`;

interface Writer extends Disposable {
  readonly child: ChildProcess;
  /** What the process has written to stderr. */
  readonly errors: () => string;
  /** The end of the pipe that nobody reads yet. */
  readonly readEnd: number;
}

/** Starts a process whose standard output is a pipe, as in a container. The streams of `spawn` are sockets. */
function startWriter(...args: readonly string[]): Writer {
  const directory = mkdtempSync(join(tmpdir(), 'weir-pipe-'));
  const path = join(directory, 'pipe');
  spawnSync('sh', ['-c', 'mkfifo "$0"', path]);
  // Opening one end of a pipe waits for the other end, except without blocking.
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const readEnd = openSync(path, constants.O_RDONLY);
  closeSync(first);
  const child = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', SCRIPT, ...args], {
    stdio: ['ignore', writeEnd, 'pipe'],
  });
  closeSync(writeEnd);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  return { child, errors: () => errors, readEnd, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}

test('does not block while nobody reads the pipe, and writes everything in order', async () => {
  using writer = startWriter();
  const { child, errors, readEnd } = writer;
  await once(child.stderr ?? child, 'data');
  assert.equal(errors(), 'not blocked\n');
  const [bytes] = await Promise.all([buffer(createReadStream('', { fd: readEnd })), once(child, 'close')]);
  assert.equal(errors(), 'not blocked\nwritten\n');
  assert.equal(bytes.length, BYTES + 1);
  assert.equal(bytes.subarray(-2).toString(), 'ab');
});

test('a process ends although nobody reads the pipe', async () => {
  using writer = startWriter('exit');
  const [code] = await once(writer.child, 'close');
  assert.deepEqual([code, writer.errors()], [7, 'not blocked\n']);
  closeSync(writer.readEnd);
});

test('discards lines when the reader of the pipe has left', async () => {
  using writer = startWriter();
  closeSync(writer.readEnd);
  const [code] = await once(writer.child, 'close');
  assert.deepEqual([code, writer.errors()], [0, 'not blocked\nwritten\n']);
});
