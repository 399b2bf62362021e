// Runs under Node's option --test-udp-no-try-send. With this option the send buffer seems full at first, so libuv
// queues each datagram.
import assert from 'node:assert/strict';
import { hostOf } from '../../../src/transport/peer-address.ts';
import { rawUdpTransport } from '../../../src/transport/udp/raw-udp-transport.ts';
import { loopbackAddress, PORT } from '../../fixtures/listen-address.ts';
import { udpClient, udpEndpoint } from '../../fixtures/udp-sockets.ts';

const at = { address: loopbackAddress(), port: PORT, reusePort: true };
const events = { onFailed: assert.fail, onMessage: () => undefined, onThrow: assert.fail };
const listening = Promise.withResolvers<void>();
const listener = rawUdpTransport.bind(at, { ...events, onListening: listening.resolve });
await listening.promise;
const client = await udpClient({ host: at.address, port: at.port });
const sent: number[] = [];
let onSent = Promise.withResolvers<void>();
const peer = {
  host: hostOf('127.0.0.1'),
  port: client.port,
  onSent(bytes: number) {
    sent.push(bytes);
    onSent.resolve();
  },
};
// The client's socket is connected, so it receives only from the listener's address.
listener.send(Buffer.from('first'), peer);
listener.send(Buffer.from('dropped while the first one waits'), peer);
assert.deepEqual(sent, []);
await onSent.promise;
onSent = Promise.withResolvers();
listener.send(Buffer.from('third'), peer);
await onSent.promise;
assert.deepEqual([sent, String(await client.take()), String(await client.take())], [[5, 5], 'first', 'third']);

const endpoint = await udpEndpoint();
const upstream = rawUdpTransport.connect(endpoint.endpoint, { ...events, onError: assert.fail });
assert.ok(upstream !== undefined);
for (const text of ['first', 'dropped']) upstream.send(Buffer.from(text));
assert.equal(String((await endpoint.next()).bytes), 'first');
upstream.send(Buffer.from('third'));
assert.equal(String((await endpoint.next()).bytes), 'third');
upstream.send(Buffer.from('closed before it was sent'));
upstream.close();
listener.send(Buffer.from('closed before it was sent'), peer);
listener.close();
await Promise.all([client[Symbol.asyncDispose](), endpoint[Symbol.asyncDispose]()]);
assert.deepEqual(sent, [5, 5]);
process.stdout.write('all assertions passed\n');
