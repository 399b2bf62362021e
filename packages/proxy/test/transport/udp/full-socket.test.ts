import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

const PROGRAM = fileURLToPath(new URL('full-socket-process.ts', import.meta.url));

test('while the kernel has no room one datagram per socket waits, others are dropped, and only what was sent counts', async () => {
  const program = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', '--test-udp-no-try-send', PROGRAM],
    mayExit: true,
  });
  const { code } = await program.exited;
  assert.equal(code, 0, program.output());
  assert.match(program.stdout(), /all of it was so/);
});
