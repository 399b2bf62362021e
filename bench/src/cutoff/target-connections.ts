// The connections of the target's clients. Each connection notes when its last byte arrived, and when the client noticed the end.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { request } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { type ConnectionKind, MESSAGE_BYTES, MESSAGE_INTERVAL_MS, TARGET_PORTS } from './topology.ts';

/** One connection, HTTP/2 stream or UDP flow. Times are of the machine's monotonic clock. */
export type TargetConnection = {
  readonly kind: ConnectionKind;
  /** When the last byte from the endpoint arrived. */
  lastByteAt: number;
  /** When the client noticed the end: a reset, a close, or for UDP an ICMP error. Undefined while the connection is open. */
  endedAt: number | undefined;
  close(): void;
};

const OPEN_TIMEOUT_MS = 20_000;
export const STREAMS_PER_SESSION = 10;

/** Opens connections of one kind through the proxy at `host`. Resolves after the first message of each connection. */
export async function openConnections(
  kind: ConnectionKind,
  host: string,
  count: number,
): Promise<readonly TargetConnection[]> {
  switch (kind) {
    case 'tcp':
      return openInTurn(count, () => openTcp(host));
    case 'websocket':
      return openInTurn(count, () => openWebSocket(host));
    case 'http2':
      return openStreams(host, count);
    case 'udp':
      return openInTurn(count, () => openFlow(host));
  }
}

/** Less than the listen backlogs of the proxies and of the endpoint. */
const MAX_PENDING_CONNECTIONS = 16;

async function openInTurn(count: number, open: () => Promise<TargetConnection>): Promise<TargetConnection[]> {
  const connections: TargetConnection[] = [];
  let left = count;
  const openUntilDone = async (): Promise<void> => {
    while (left-- > 0) connections.push(await open());
  };
  await Promise.all(Array.from({ length: MAX_PENDING_CONNECTIONS }, openUntilDone));
  return connections;
}

async function openTcp(host: string): Promise<TargetConnection> {
  const socket = connect({ host, port: TARGET_PORTS.tcp });
  return follow('tcp', socket, () => socket.destroy());
}

async function openWebSocket(host: string): Promise<TargetConnection> {
  const outgoing = request({
    host,
    port: TARGET_PORTS.websocket,
    agent: false,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    },
  });
  outgoing.end();
  outgoing.once('response', ({ statusCode }) => outgoing.destroy(new Error(`status ${statusCode} instead of 101`)));
  const [, socket, head] = await once(outgoing, 'upgrade', { signal: AbortSignal.timeout(OPEN_TIMEOUT_MS) });
  if (head.length > 0) socket.unshift(head);
  return follow('websocket', socket, () => socket.destroy());
}

async function openStreams(host: string, count: number): Promise<TargetConnection[]> {
  const connections: TargetConnection[] = [];
  for (let left = count; left > 0; left -= STREAMS_PER_SESSION) {
    const session = connectHttp2(`http://${host}:${TARGET_PORTS.http2}`);
    session.on('error', () => {}); // ignored: the streams of the session report the end
    const streams = Array.from({ length: Math.min(left, STREAMS_PER_SESSION) }, () => openStream(session));
    connections.push(...(await Promise.all(streams)));
  }
  return connections;
}

function openStream(session: ClientHttp2Session): Promise<TargetConnection> {
  return follow('http2', session.request({ ':path': '/' }), () => session.destroy());
}

/** Reads the stream from now on. Resolves when the first bytes arrive, and rejects if the stream ends before. */
async function follow(kind: ConnectionKind, stream: Readable, close: () => void): Promise<TargetConnection> {
  const connection: TargetConnection = { kind, lastByteAt: 0, endedAt: undefined, close };
  const opened = Promise.withResolvers<void>();
  const end = (error?: Error): void => {
    connection.endedAt ??= monotonicMs();
    opened.reject(error ?? new Error(`a ${kind} connection ended before its first message`));
  };
  stream.on('data', () => {
    connection.lastByteAt = monotonicMs();
    opened.resolve();
  });
  stream.once('error', end);
  stream.once('end', end);
  stream.once('close', end);
  const timer = setTimeout(() => opened.reject(new Error(`no message on a ${kind} connection`)), OPEN_TIMEOUT_MS);
  try {
    await opened.promise;
  } finally {
    clearTimeout(timer);
  }
  return connection;
}

/** Sends a datagram every half second, also after the end, because a reply after the end would be an error of the proxy. */
async function openFlow(host: string): Promise<TargetConnection> {
  const socket = createSocket('udp4');
  socket.connect(TARGET_PORTS.udp, host);
  await once(socket, 'connect');
  const datagram = Buffer.alloc(MESSAGE_BYTES, 'u');
  const timer = setInterval(() => socket.send(datagram, () => {}), MESSAGE_INTERVAL_MS);
  const opened = Promise.withResolvers<void>();
  const connection: TargetConnection = {
    kind: 'udp',
    lastByteAt: 0,
    endedAt: undefined,
    close() {
      clearInterval(timer);
      socket.close();
    },
  };
  socket.on('message', () => {
    connection.lastByteAt = monotonicMs();
    opened.resolve();
  });
  socket.on('error', (error) => {
    connection.endedAt ??= monotonicMs();
    opened.reject(error);
  });
  socket.send(datagram, () => {});
  const timeout = setTimeout(() => opened.reject(new Error('no answer on a UDP flow')), OPEN_TIMEOUT_MS);
  try {
    await opened.promise;
  } catch (error) {
    connection.close();
    throw error;
  } finally {
    clearTimeout(timeout);
  }
  return connection;
}
