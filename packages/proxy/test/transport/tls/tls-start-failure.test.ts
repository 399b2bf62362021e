import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SecureContext } from 'node:tls';
import { connectClient } from '@weir/testkit';
import type { AcceptedStream } from '../../../src/transport/tcp-transport.ts';
import { startTls } from '../../../src/transport/tls/tls-stream.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startTestListener } from '../tcp/test-listener.ts';

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: whatever keeps TLS from beginning, its client is not left without an answer`, async () => {
    using door = await startTestListener(transport);
    const arrival = door.next();
    await using client = await connectClient({ host: door.host, port: door.port });
    const { stream, events } = await arrival;
    const tls = { context: {} as SecureContext, alpn: new Uint8Array(0), requestsClientCertificate: false };
    assert.throws(() => startTls(stream as AcceptedStream, { tls, unread: new Uint8Array(0) }, events));
    assert.equal((await client.ended).kind, 'end');
  });
}
