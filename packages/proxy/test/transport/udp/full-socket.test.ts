import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

const PROGRAM = fileURLToPath(new URL('full-socket-process.ts', import.meta.url));

test('keeps one datagram per socket while the send buffer is full, drops the others, and counts only sent ones', async () => {
  const program = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', '--test-udp-no-try-send', PROGRAM],
    mayExit: true,
  });
  const { code } = await program.exited;
  assert.equal(code, 0, program.output());
  assert.match(program.stdout(), /all assertions passed/);
});
