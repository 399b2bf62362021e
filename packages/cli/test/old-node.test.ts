import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connectClient, echoServer, eventually, freePort, temporaryDirectory } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from './fixtures/manifests.ts';
import { findOldNode } from './fixtures/old-node.ts';
import { startWeirProcess } from './fixtures/weir-process.ts';

const BIN = fileURLToPath(new URL('../bin/weir.js', import.meta.url));
const node = findOldNode() ?? '';
const run = promisify(execFile);

describe('weir on an old Node.js', { skip: node === '' && 'no Node older than 22.19 on the PATH' }, () => {
  test('prints one message and exits with 2 if it is installed from npm', async () => {
    await using directory = temporaryDirectory('old-node');
    copyFileSync(BIN, join(directory.path, 'weir.mjs'));
    await assert.rejects(run(node, [join(directory.path, 'weir.mjs'), 'get', 'services']), (error: unknown) => {
      const { code, stderr } = error as { code: number; stderr: string };
      assert.equal(code, 2);
      assert.match(stderr, /^weir needs Node\.js 22\.19 or newer, but this is \d+\.\d+\.\d+; install .*\n$/);
      return true;
    });
  });

  test('runs on the Node.js of the checkout if it is started from a checkout', async () => {
    const { stdout } = await run(node, [BIN, '--version']);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });

  test('exits with the exit code of the command', async () => {
    await assert.rejects(run(node, [BIN, 'bogus']), (error: unknown) => (error as { code: number }).code === 2);
  });

  test('stops the command on SIGTERM, and when the launcher is killed', async () => {
    await using files = manifestDirectory();
    await using backend = await echoServer();
    const port = await freePort();
    files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const args = ['standalone', '-f', files.path, '--workers', '1', '--console', 'off'];
      const command = await startWeirProcess(args, { node, readyWhen: /^ready/m });
      await (await connectClient({ port })).close();
      const exit = await command.stop(signal);
      assert.deepEqual(exit, signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal });
      await eventually(() => assert.rejects(connectClient({ port }), /ECONNREFUSED/));
    }
  });
});
