import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Certificate, eventually, makeCertificate } from '@weir/testkit';
import { type Redis, type RedisOptions, startRedis } from './redis.ts';

export interface RedisGroupOptions {
  /** Password for clients and for replication. */
  readonly password?: string;
  readonly sentinelPassword?: string;
  /** A primary is replaced if it does not respond for this time. With 1 s (default), a healthy primary on a busy host may be replaced. */
  readonly downAfterMs?: number;
  /** If set, all connections use TLS, and the authority issues a certificate for 127.0.0.1 to each server. */
  readonly certificateAuthority?: Certificate;
}

/** Redis servers that elect a new primary when the primary fails. */
export interface RedisGroup extends AsyncDisposable {
  /** URL of the group, without user and password. */
  readonly url: string;
  /** The two servers that are a primary and its replica. Their roles may change. */
  readonly pair: readonly [Redis, Redis];
  /** Returns the server of the pair that is the primary now. */
  primary(): Promise<Redis>;
  replica(): Promise<Redis>;
  /** Sends a command to one server and returns its raw reply. */
  command(server: Pick<Redis, 'host' | 'port'>, command: string): Promise<string>;
  /** Resolves when the group reports that it could survive the loss of its primary. */
  waitUntilHealthy(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the servers of a group and sends commands to them. */
export interface RedisLauncher {
  start(options?: RedisOptions): Promise<Redis>;
  command(server: Pick<Redis, 'host' | 'port'>, command: string, password?: string): Promise<string>;
  /** Reports whether the server is a primary; false if the server does not respond. */
  isPrimary(server: Redis): Promise<boolean>;
  close(): Promise<void>;
}

export function redisLauncher({ password, certificateAuthority }: RedisGroupOptions): RedisLauncher {
  const started: Redis[] = [];
  const sendCommand: RedisLauncher['command'] = (server, command, serverPassword = password) =>
    sendRedisCommand(server, command, { password: serverPassword, ca: certificateAuthority?.certificate });
  return {
    async start(options = {}) {
      const server = await startRedis({
        ...(password === undefined ? {} : { password }),
        ...(certificateAuthority === undefined ? {} : { certificate: redisCertificate(certificateAuthority) }),
        ...options,
      });
      started.push(server);
      return server;
    },
    command: sendCommand,
    isPrimary: async (server) => {
      const role = await sendCommand(server, 'ROLE').catch(() => '');
      return role.includes('\r\nmaster\r\n');
    },
    close: async () => void (await Promise.all(started.map((server) => server.close()))),
  };
}

export function redisCertificate(issuer: Certificate): Certificate {
  return makeCertificate({ name: 'redis', names: ['127.0.0.1', 'localhost'], issuer });
}

/** Returns the server of the pair that has the wanted role. Waits while both servers report the same role. */
export async function serverWithRole(
  launcher: RedisLauncher,
  pair: readonly [Redis, Redis],
  wanted: 'primary' | 'replica',
): Promise<Redis> {
  return eventually(
    async () => {
      const [first, second] = await Promise.all(pair.map((server) => launcher.isPrimary(server)));
      if (first === second) throw new Error('expected one primary in the pair');
      return pair[first === (wanted === 'primary') ? 0 : 1];
    },
    { timeoutMs: 30_000 },
  );
}

// A minimal Redis client for fixtures.
export interface RedisCommandOptions {
  readonly password?: string | undefined;
  /** Certificate of the authority as PEM. If set, the connection uses TLS. */
  readonly ca?: string | undefined;
}

/** Argument of a PING that follows the command. Its reply marks the end of the command's reply, because Sentinel has no QUIT. */
const END_MARKER = 'that-is-all';
const END_REPLY = `$${END_MARKER.length}\r\n${END_MARKER}\r\n`;

/** Sends one command and returns the raw reply (RESP 2). Rejects on an error reply. The arguments must not contain spaces. */
export async function sendRedisCommand(
  { host, port }: Pick<Redis, 'host' | 'port'>,
  command: string,
  { password, ca }: RedisCommandOptions = {},
): Promise<string> {
  const socket = ca === undefined ? connectPlain({ host, port }) : connectTls({ host, port, ca });
  try {
    const { promise: complete, resolve } = Promise.withResolvers<void>();
    let received = '';
    socket.setEncoding('utf8').on('data', (text) => {
      received += text;
      if (received.endsWith(END_REPLY)) resolve();
    });
    socket.setTimeout(5_000, () => socket.destroy(new Error(`${host}:${port} did not answer ${command} within 5 s`)));
    const auth = password === undefined ? '' : `AUTH ${password}\r\n`;
    socket.write(`${auth}${command}\r\nPING ${END_MARKER}\r\n`);
    await Promise.race([complete, once(socket, 'close')]);
    const reply = received.slice(password === undefined ? 0 : received.indexOf('\n') + 1).replace(END_REPLY, '');
    if (reply.startsWith('-')) throw new Error(`${host}:${port} rejected ${command}: ${reply.trim()}`);
    return reply;
  } finally {
    socket.destroy();
  }
}
