// Program `other-clients-process.ts`: clients of the other tenant. Every client sends messages at a fixed rate and compares the echo byte
// by byte. The parent process calls `OtherClients` by RPC.
import { connect, type Socket } from 'node:net';
import { patternBytes } from '@weir/testkit';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { LatencyHistogram } from '../measure/statistics.ts';
import { serveRpc } from '../processes/rpc.ts';
import { OTHER_PORT } from './topology.ts';

/** What the clients noticed since the previous report. Latencies are in ms. */
export type OthersReport = {
  readonly operations: number;
  readonly p50: number;
  readonly p99: number;
  /** Connections that ended or could not be opened, echoes that differed, and messages without an echo. */
  readonly lost: number;
  /** The first loss in words, or null. */
  readonly firstLoss: string | null;
};

export type OtherClients = {
  /** Opens connections through each proxy, and begins to send. */
  open(hosts: readonly string[], connectionsPerProxy: number): Promise<void>;
  report(): OthersReport;
  close(): void;
};

const MESSAGE_BYTES = 512;
const INTERVAL_MS = 200;
/** A message counts as lost if its echo takes longer. */
const LOST_AFTER_MS = 5_000;
/** Every nth operation opens a new connection. */
const NEW_CONNECTION_EVERY = 10;

type Pending = { readonly message: Buffer; readonly sentAt: number };
type EchoClient = { readonly socket: Socket; readonly pending: Pending[]; received: Buffer; sent: number };

let clients: EchoClient[] = [];
const timers = new Set<NodeJS.Timeout>();
let latencies = new LatencyHistogram();
let lost = 0;
let firstLoss: string | null = null;
let isClosing = false;

serveRpc<OtherClients>({
  async open(hosts, connectionsPerProxy) {
    isClosing = false;
    clients = await Promise.all(
      hosts.flatMap((host) => Array.from({ length: connectionsPerProxy }, () => openEcho(host))),
    );
    for (const [index, client] of clients.entries()) {
      const delay = (index / clients.length) * INTERVAL_MS;
      timers.add(setTimeout(() => timers.add(setInterval(() => void operate(client), INTERVAL_MS)), delay));
    }
  },
  report() {
    const now = monotonicMs();
    for (const { pending } of clients)
      if ((pending[0]?.sentAt ?? now) < now - LOST_AFTER_MS) noteLoss(`no echo for ${LOST_AFTER_MS} ms`);
    const ms = (q: number): number => latencies.percentile(q) / 1_000;
    const report = { operations: latencies.count, p50: ms(0.5), p99: ms(0.99), lost, firstLoss };
    latencies = new LatencyHistogram();
    lost = 0;
    firstLoss = null;
    return report;
  },
  close() {
    isClosing = true;
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
    for (const { socket } of clients) socket.destroy();
    clients = [];
  },
});

async function operate(client: EchoClient): Promise<void> {
  client.sent++;
  if (client.sent % NEW_CONNECTION_EVERY === 0) await echoOnNewConnection(client.socket.remoteAddress ?? '');
  else send(client);
}

function send(client: EchoClient): void {
  const message = patternBytes({ seed: 1, offset: client.sent * MESSAGE_BYTES, length: MESSAGE_BYTES });
  client.pending.push({ message, sentAt: monotonicMs() });
  client.socket.write(message);
}

async function echoOnNewConnection(host: string): Promise<void> {
  try {
    const startedAt = monotonicMs();
    const client = await openEcho(host);
    latencies.add(monotonicMs() - startedAt);
    client.socket.removeAllListeners('close').destroy();
  } catch {
    // `openEcho` has counted the loss
  }
}

/** Opens a connection. Resolves after the echo of the first message. */
async function openEcho(host: string): Promise<EchoClient> {
  const socket = connect({ host, port: OTHER_PORT, noDelay: true });
  const client: EchoClient = { socket, pending: [], received: Buffer.alloc(0), sent: 0 };
  const opened = Promise.withResolvers<EchoClient>();
  socket.once('close', () => {
    if (!isClosing) noteLoss(`a connection through ${host} ended`);
    opened.reject(new Error(`a connection through ${host} ended`));
  });
  socket.on('error', (error) => noteLoss(error.message));
  socket.on('data', (bytes: Buffer) => {
    receive(client, bytes);
    opened.resolve(client);
  });
  send(client);
  return opened.promise;
}

function receive(client: EchoClient, bytes: Buffer): void {
  client.received = Buffer.concat([client.received, bytes]);
  for (let first = client.pending[0]; first !== undefined; first = client.pending[0]) {
    if (client.received.length < first.message.length) return;
    const echo = client.received.subarray(0, first.message.length);
    client.received = client.received.subarray(first.message.length);
    client.pending.shift();
    if (echo.equals(first.message)) latencies.add(monotonicMs() - first.sentAt);
    else noteLoss('an echo differs from its message');
  }
}

function noteLoss(reason: string): void {
  if (isClosing) return;
  lost++;
  firstLoss ??= reason;
}
