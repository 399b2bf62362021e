// Tests that `npx weir` ends with its npx, which starts the command through a shell.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectClient, echoServer, eventually, freePort, spawnProcess } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from './fixtures/manifests.ts';

const BIN = fileURLToPath(new URL('../bin/weir.js', import.meta.url));

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`the command ends after ${signal} to npx`, { skip: process.platform !== 'linux' && 'needs /proc' }, async () => {
    await using files = manifestDirectory();
    await using backend = await echoServer();
    const port = await freePort();
    files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
    const args = [BIN, 'standalone', '-f', files.path, '--workers', '1', '--console', 'off'];
    // The second command keeps the shell from replacing itself with weir.
    const shell = `'${process.execPath}' ${args.map((each) => `'${each}'`).join(' ')}; exit $?`;
    await using npx = await spawnProcess({
      command: process.execPath,
      args: ['-e', `require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(shell)}], { stdio: 'inherit' })`],
      env: { ...process.env, npm_command: 'exec' },
      name: 'npx',
      mayExit: true,
      readyWhen: /^ready/m,
    });
    await (await connectClient({ port })).close();
    await npx.stop(signal);
    await eventually(() => assert.rejects(connectClient({ port }), /ECONNREFUSED/));
  });
}
