// Program `endpoint-process.ts JSON`: starts the endpoints of all Services. The endpoints of one Service have the same port and different
// addresses. Prints `ports JSON`. Sends the totals as JSON to a client that connects to the port `control`.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { ENDPOINT_BEHAVIOURS, type EndpointBehaviour, type EndpointConnection } from './endpoint-behaviours.ts';

/** Totals of all endpoints of a Service, without PROXY headers. `written` may include bytes that the kernel has not accepted. */
export type EndpointTotals = { connections: number; open: number; read: number; written: number };

type EndpointPlan = Readonly<
  Record<string, readonly { readonly address: string; readonly behaviour: EndpointBehaviour }[]>
>;

const plan = JSON.parse(process.argv[2] ?? '{}') as EndpointPlan;
const counts: Record<string, EndpointTotals> = {};
const ports: Record<string, number> = {};
const open = new Map<string, Set<EndpointConnection>>();

for (const [service, endpoints] of Object.entries(plan)) {
  counts[service] = { connections: 0, open: 0, read: 0, written: 0 };
  open.set(service, new Set());
  for (const { address, behaviour } of endpoints) {
    const at = { host: address, port: ports[service] ?? 0 };
    ports[service] =
      behaviour === 'datagrams' ? await serveDatagrams(service, at) : await serve(service, behaviour, at);
  }
}

const control = createServer((socket) => {
  socket.on('error', () => {});
  socket.end(JSON.stringify(currentTotals()));
});
ports.control = await listen(control, { host: '127.0.0.1', port: 0 });
console.log(`ports ${JSON.stringify(ports)}`);

function serve(
  service: string,
  behaviour: keyof typeof ENDPOINT_BEHAVIOURS,
  at: { host: string; port: number },
): Promise<number> {
  const count = counts[service] as EndpointTotals;
  const held = open.get(service) as Set<EndpointConnection>;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
    const one: EndpointConnection = { socket, headerBytes: 0 };
    count.connections++;
    held.add(one);
    socket.on('error', () => {}); // ignored, because the proxy counts the failed connection
    socket.once('close', () => {
      held.delete(one);
      addConnection(count, one);
    });
    ENDPOINT_BEHAVIOURS[behaviour](one);
  });
  return listen(server, at);
}

async function listen(server: Server, at: { host: string; port: number }): Promise<number> {
  await once(server.listen({ ...at, backlog: 1024 }), 'listening');
  return (server.address() as AddressInfo).port;
}

async function serveDatagrams(service: string, { host, port }: { host: string; port: number }): Promise<number> {
  const count = counts[service] as EndpointTotals;
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20, sendBufferSize: 1 << 20 });
  socket.on('error', () => {}); // ignored: ICMP port unreachable after the proxy closed a flow
  socket.on('message', (message, from) => {
    count.read += message.length;
    count.written += message.length;
    socket.send(message, from.port, from.address);
  });
  await once(socket.bind({ address: host, port }), 'listening');
  return socket.address().port;
}

function currentTotals(): Record<string, EndpointTotals> {
  return Object.fromEntries(
    Object.entries(counts).map(([service, count]) => {
      const held = open.get(service) ?? new Set();
      const now = { ...count, open: held.size };
      for (const one of held) addConnection(now, one);
      return [service, now];
    }),
  );
}

function addConnection(count: EndpointTotals, { socket, headerBytes }: EndpointConnection): void {
  count.read += socket.bytesRead - headerBytes;
  count.written += socket.bytesWritten;
}
