// Serves the methods of `FlowFlood` over IPC: sends each UDP datagram from another address and port, as an attacker does who forges the
// addresses of clients. Uses system calls, because a socket of `node:dgram` for each datagram would cost more than the proxy's work.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { serveRpc } from '../processes/rpc.ts';
import { DATAGRAM_BUFFER_BYTES } from '../subjects/subject.ts';

export type FlowFlood = {
  /** Binds the endpoint, which counts datagrams and does not answer. Returns its port. */
  openEndpoint(): Promise<number>;
  /** Sends `perSecond` datagrams a second to the port. Resolves with the number of sent datagrams, and of those that reached the endpoint. */
  run(port: number, perSecond: number, seconds: number): Promise<{ sent: number; arrived: number }>;
};

const AF_INET = 2;
const SOCK_DGRAM = 2;
const ADDRESS_BYTES = 16;
/** How long to wait for datagrams that are still on their way. */
const SETTLE_MS = 200;

const { functions: libc } = process.getBuiltinModule('node:ffi').dlopen('libc.so.6', {
  socket: { return: 'int32', arguments: ['int32', 'int32', 'int32'] },
  bind: { return: 'int32', arguments: ['int32', 'buffer', 'uint32'] },
  sendto: { return: 'int64', arguments: ['int32', 'buffer', 'uint64', 'int32', 'buffer', 'uint32'] },
  close: { return: 'int32', arguments: ['int32'] },
});

const endpoint = createSocket({ type: 'udp4', recvBufferSize: DATAGRAM_BUFFER_BYTES });
let arrived = 0;
endpoint.on('message', () => arrived++);

const payload = Buffer.from('forged');
const from = socketAddress(0);
let clients = 0;

serveRpc<FlowFlood>({
  async openEndpoint() {
    await once(endpoint.bind({ address: '127.0.0.1', port: 0 }), 'listening');
    return endpoint.address().port;
  },
  async run(port, perSecond, seconds) {
    const to = socketAddress(port);
    const total = perSecond * seconds;
    const startedAt = performance.now();
    arrived = 0;
    for (let sent = 0; sent < total; ) {
      const due = Math.min(total, Math.ceil(((performance.now() - startedAt) / 1000) * perSecond));
      for (; sent < due; sent++) sendFromNewClient(to);
      await setTimeout(1);
    }
    await setTimeout(SETTLE_MS);
    return { sent: total, arrived };
  },
});

/** Each client has an address of its own in 127.64.0.0/10, and the kernel chooses its port. */
function sendFromNewClient(to: Buffer): void {
  clients++;
  from.writeUInt32BE((0x7f400000 | (clients & 0x3fffff)) >>> 0, 4);
  const descriptor = libc.socket(AF_INET, SOCK_DGRAM, 0);
  if (descriptor < 0) throw new Error('failed to open a socket');
  libc.bind(descriptor, from, ADDRESS_BYTES);
  libc.sendto(descriptor, payload, BigInt(payload.length), 0, to, ADDRESS_BYTES);
  libc.close(descriptor);
}

/** Returns the `sockaddr_in` of a port at 127.0.0.1. */
function socketAddress(port: number): Buffer {
  const address = Buffer.alloc(ADDRESS_BYTES);
  address.writeUInt16LE(AF_INET, 0);
  address.writeUInt16BE(port, 2);
  address.writeUInt32BE(0x7f000001, 4);
  return address;
}
