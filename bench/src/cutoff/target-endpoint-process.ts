// Program `target-endpoint-process.ts HOST`: the endpoint of the target. It sends a message on every TCP connection, WebSocket and HTTP/2
// stream, at once and then regularly, and echoes UDP datagrams. Prints `listening`.
import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { MESSAGE_BYTES, MESSAGE_INTERVAL_MS, STREAM_MESSAGE_INTERVAL_MS, TARGET_PORTS } from './topology.ts';

const TICK_MS = 10;
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const [host = ''] = process.argv.slice(2);
const message = Buffer.alloc(MESSAGE_BYTES, 'm');
/** An unmasked binary frame (RFC 6455, section 5.2) with the message. */
const frame = Buffer.concat([Buffer.from([0x82, MESSAGE_BYTES]), message]);

const sendEveryHalfSecond = regularSender(MESSAGE_INTERVAL_MS);
const sendEveryTwoSeconds = regularSender(STREAM_MESSAGE_INTERVAL_MS);

const tcp = createServer({ noDelay: true }, (socket) => sendEveryTwoSeconds(socket, message));
const http = createHttpServer((_, response) => response.end('no WebSocket'));
http.on('upgrade', ({ headers }, socket) => {
  const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${WEBSOCKET_GUID}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  sendEveryTwoSeconds(socket, frame);
});
const http2 = createHttp2Server({ settings: { maxConcurrentStreams: 10_000 } });
http2.on('sessionError', () => {}); // ignored: the proxy resets its connections
http2.on('stream', (stream: ServerHttp2Stream) => {
  stream.respond({ ':status': 200 });
  sendEveryHalfSecond(stream, message);
});
const udp = createSocket('udp4');
udp.on('message', (datagram, { port, address }) => udp.send(datagram, port, address));
udp.on('error', () => {}); // ignored: ICMP port unreachable after the proxy closed its socket

await Promise.all([
  once(tcp.listen({ host, port: TARGET_PORTS.tcp, backlog: 4_096 }), 'listening'),
  once(http.listen({ host, port: TARGET_PORTS.websocket, backlog: 4_096 }), 'listening'),
  once(http2.listen({ host, port: TARGET_PORTS.http2, backlog: 4_096 }), 'listening'),
  once(udp.bind({ address: host, port: TARGET_PORTS.udp }), 'listening'),
]);
console.log('listening');

/**
 * Returns a function that sends `bytes` on a stream at once, and then once per interval. The streams are spread evenly over the interval, so
 * that some stream sends at every moment.
 */
function regularSender(intervalMs: number): (stream: Duplex, bytes: Buffer) => void {
  const sendersByTick = Array.from({ length: intervalMs / TICK_MS }, () => new Set<() => void>());
  let tick = 0;
  let opened = 0;
  setInterval(() => {
    for (const send of sendersByTick[tick] ?? []) send();
    tick = (tick + 1) % sendersByTick.length;
  }, TICK_MS);
  return (stream, bytes) => {
    const senders = sendersByTick[opened++ % sendersByTick.length];
    const send = (): void => void stream.write(bytes);
    senders?.add(send);
    stream.on('error', () => {}); // ignored: the client reports how its connection ended
    stream.once('close', () => senders?.delete(send));
    stream.resume();
    send();
  };
}
