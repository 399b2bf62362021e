// A worker that is terminated while OpenSSL calls back for ALPN must not end the process.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./terminate-workers.ts', import.meta.url));
/** Without the guard, about one termination of five ends the process. */
const GUARDED_WORKERS = 20;
const MAX_UNGUARDED_WORKERS = 100;
const WORKERS_AT_EXIT = 8;

test('a process survives the termination of workers during TLS handshakes', () => {
  const { status, signal, stderr } = terminateWorkers('guarded', GUARDED_WORKERS);
  assert.deepEqual({ status, signal }, { status: 0, signal: null }, stderr);
});

test('a process exits with its status while workers are in TLS handshakes', () => {
  const { status, signal, stderr } = terminateWorkers('exit', WORKERS_AT_EXIT);
  assert.deepEqual({ status, signal }, { status: 0, signal: null }, stderr);
});

test('Node.js aborts the process if the supervisor does not wait for the end of the callback', {
  skip: process.versions.node.startsWith('26.10.') ? false : 'only Node.js 26.10 is known to abort',
}, () => {
  const { signal, stderr } = terminateWorkers('unguarded', MAX_UNGUARDED_WORKERS);
  assert.match(stderr, /Callbacks cannot throw an exception/);
  assert.equal(signal, 'SIGABRT');
});

function terminateWorkers(
  mode: 'guarded' | 'unguarded' | 'exit',
  count: number,
): { readonly status: number | null; readonly signal: string | null; readonly stderr: string } {
  // Without a core dump.
  const command = ['-c', 'ulimit -c 0 && exec "$@"', 'sh', process.execPath, '--conditions=source', PROGRAM];
  return spawnSync('sh', [...command, mode, String(count)], { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
}
