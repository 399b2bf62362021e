import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SecureContext } from 'node:tls';
import { connectRaw } from '@weir/testkit';
import type { AcceptedStream } from '../../src/tcp/transport.ts';
import { secure } from '../../src/tls/tls-stream.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';
import { accepting } from '../tcp/accepting.ts';

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: whatever keeps TLS from beginning, its client is not left without an answer`, async () => {
    using door = await accepting(transport);
    const arrival = door.next();
    await using client = await connectRaw({ host: door.host, port: door.port });
    const { stream, events } = await arrival;
    const terms = { context: {} as SecureContext, alpn: new Uint8Array(0), asksForCertificate: false };
    assert.throws(() => secure(stream as AcceptedStream, { terms, unread: new Uint8Array(0) }, events));
    assert.equal((await client.ended).kind, 'end');
  });
}
