// Tests how `weir standalone` chooses its transport, and that it does not start if the system calls do not work.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connectClient, echoServer, freePort, temporaryDirectory } from '@weir/testkit';
import { programPath, requireProgram } from '@weir/tools';
import { endpointSlice, type ManifestDirectory, manifestDirectory, service } from '../fixtures/manifests.ts';
import { runWeirProcess, startWeirProcess } from '../fixtures/weir-process.ts';

/** As on a version of Node.js without `node:ffi`. */
const WITHOUT_FFI = { NODE_OPTIONS: '--no-experimental-ffi', WEIR_TRANSPORT: undefined };
const REMEDY = 'use Node.js 26.10 or later, or set WEIR_TRANSPORT=node';

/** A configuration with which OpenSSL works differently than the self-test expects. */
const WITHOUT_TLS_1_3 = `nodejs_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = defaults
[defaults]
MaxProtocol = TLSv1.2
`;

test('exits with 2 and one line that names WEIR_TRANSPORT=node if Node.js has no node:ffi', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { port: await freePort() }), endpointSlice('web', 9));
  const { code, output } = await runWeirProcess(argumentsFor(files), WITHOUT_FFI);
  assert.equal(code, 2, output);
  const reason = `Node.js ${process.versions.node} does not offer node:ffi`;
  assert.deepEqual(withoutWarnings(output), [`weir: the self-test of the system calls failed: ${reason}; ${REMEDY}`]);
});

test('serves without node:ffi with WEIR_TRANSPORT=node, and logs the transport', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  const env = { ...WITHOUT_FFI, WEIR_TRANSPORT: 'node', WEIR_LOG_LEVEL: 'info' };
  await using standalone = await startWeirProcess(argumentsFor(files), { env, readyWhen: /^ready/m });
  await using client = await connectClient({ port });
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
  await standalone.waitForOutput(/"transport":"node".*"the first routing table is in effect"/);
});

test("terminates TLS with Node's TLSSocket, and logs one line, if the self-test of OpenSSL's functions fails", async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { port: await freePort() }), endpointSlice('web', 9));
  await using directory = temporaryDirectory('openssl');
  const config = join(directory.path, 'openssl.cnf');
  writeFileSync(config, WITHOUT_TLS_1_3);
  const env = { NODE_OPTIONS: `--openssl-config=${config}`, WEIR_LOG_LEVEL: 'info' };
  await using standalone = await startWeirProcess(argumentsFor(files), { env, readyWhen: /^ready/m });
  await standalone.waitForOutput(/"tls":"node".*"the first routing table is in effect"/);
  const lines = standalone.output().split('\n');
  const warnings = lines.filter((line) => line.includes("the self-test of OpenSSL's functions failed"));
  assert.equal(warnings.length, 1, standalone.output());
  assert.match(warnings[0] as string, /"reason":"version TLSv1.2"/);
});

describe('a kernel that refuses a system call', requireProgram('strace'), () => {
  test('fails the self-test, and the error names the system call', async () => {
    await using files = manifestDirectory();
    files.write('shop.yaml', service('web', { port: await freePort() }), endpointSlice('web', 9));
    const strace = `${programPath('strace')} -f -qq -o /dev/null -e trace=accept4 -e inject=accept4:error=EPERM`;
    const env = { WEIR_TRANSPORT: undefined };
    await using command = await startWeirProcess(argumentsFor(files), { env, shell: `set -- ${strace} "$@"` });
    const { code } = await command.exited;
    assert.equal(code, 2, command.output());
    const reason = 'accept4 without a connection: result -1, expected -11';
    assert.deepEqual(withoutWarnings(command.output()), [
      `weir: the self-test of the system calls failed: ${reason}; ${REMEDY}`,
    ]);
  });
});

function argumentsFor(files: ManifestDirectory): string[] {
  return ['standalone', '-f', files.path, '--workers', '1', '--console', 'off'];
}

/** Returns the lines of the output except warnings about this machine. */
function withoutWarnings(output: string): string[] {
  return output.split('\n').filter((line) => line !== '' && !line.startsWith('warning: '));
}
