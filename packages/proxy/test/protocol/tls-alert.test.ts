import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { encodeTlsAlert, TLS_ALERT, tlsAlertFor } from '../../src/protocol/tls-alert.ts';

for (const version of ['TLSv1.2', 'TLSv1.3'] satisfies SecureVersion[]) {
  test(`a ${version} client understands the alert unrecognized_name`, async (t) => {
    const server = createServer((socket) => {
      socket.on('error', () => {}); // Ignored, because the test checks the client's error.
      socket.once('data', () => socket.end(encodeTlsAlert(TLS_ALERT.unrecognizedName)));
    }).listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = connect({
      host: '127.0.0.1',
      port,
      servername: 'a.example',
      minVersion: version,
      maxVersion: version,
    });
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
    assert.match(error.code ?? '', /UNRECOGNIZED_NAME/);
  });
}

test('an alert is a record of seven bytes', () => {
  assert.deepEqual([...encodeTlsAlert(TLS_ALERT.decodeError)], [21, 3, 3, 0, 2, 2, 50]);
});

test('a client that does not speak TLS gets no alert, and a TLS client gets the alert for its fault', () => {
  assert.equal(tlsAlertFor('not-tls'), undefined);
  assert.equal(tlsAlertFor('malformed'), 50);
  assert.equal(tlsAlertFor('unexpected-message'), 10);
});
