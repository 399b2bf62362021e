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

test('this Node has the handles, and they are chosen', async () => {
  assert.notEqual(findRawTcpBinding(), undefined);
  assert.equal(await chooseTcpTransport(), rawTransport);
});

test('bindings that lack anything are not used', () => {
  const offered = (overTcp: object, overStream: object): unknown =>
    createRawTcpBinding({ ...tcp, ...overTcp } as never, { ...stream, ...overStream } as never);
  assert.notEqual(offered({}, {}), undefined);
  for (const name of Object.keys(tcp)) assert.equal(offered({ [name]: undefined }, {}), undefined, name);
  for (const name of Object.keys(stream)) assert.equal(offered({}, { [name]: undefined }), undefined, name);
  assert.equal(offered({ TCP: class {} }, {}), undefined);
  assert.equal(offered({ constants: { SOCKET: 0, SERVER: 1, UV_TCP_IPV6ONLY: 1 } }, {}), undefined);
});
