import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseTcpTransport } from '../../../src/transport/choose-transport.ts';
import { createRawTcpBinding, findRawTcpBinding } from '../../../src/transport/tcp/raw-tcp-binding.ts';
import { rawTransport } from '../../../src/transport/tcp/raw-transport.ts';

class Handle {}
for (const method of [
  'bind',
  'bind6',
  'listen',
  'connect',
  'connect6',
  'getpeername',
  'setNoDelay',
  'reset',
  'close',
]) {
  Object.assign(Handle.prototype, { [method]: () => 0 });
}
for (const method of ['useUserBuffer', 'readStart', 'readStop', 'writeBuffer', 'shutdown']) {
  Object.assign(Handle.prototype, { [method]: () => 0 });
}

const tcp = {
  TCP: Handle,
  TCPConnectWrap: class {},
  constants: { SOCKET: 0, SERVER: 1, UV_TCP_IPV6ONLY: 1, UV_TCP_REUSEPORT: 2 },
};
const stream = { ShutdownWrap: class {}, streamBaseState: new Int32Array(5), kReadBytesOrError: 0, kLastWriteErr: 4 };

test('finds the raw handles of this Node.js version, and uses them', async () => {
  assert.notEqual(findRawTcpBinding(), undefined);
  assert.equal(await chooseTcpTransport(), rawTransport);
});

test('rejects bindings that lack a part', () => {
  const bindingWith = (overTcp: object, overStream: object): unknown =>
    createRawTcpBinding({ ...tcp, ...overTcp } as never, { ...stream, ...overStream } as never);
  assert.notEqual(bindingWith({}, {}), undefined);
  for (const name of Object.keys(tcp)) assert.equal(bindingWith({ [name]: undefined }, {}), undefined, name);
  for (const name of Object.keys(stream)) assert.equal(bindingWith({}, { [name]: undefined }), undefined, name);
  assert.equal(bindingWith({ TCP: class {} }, {}), undefined);
  assert.equal(bindingWith({ constants: { SOCKET: 0, SERVER: 1, UV_TCP_IPV6ONLY: 1 } }, {}), undefined);
});
