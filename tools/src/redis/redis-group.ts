import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Certificate, eventually, makeCertificate } from '@weir/testkit';
import { type Redis, type RedisOptions, startRedis } from './redis.ts';

export interface RedisGroupOptions {
  /** Password of clients and of replication. */
  readonly password?: string;
  readonly sentinelPassword?: string;
  /** A primary that is silent for this time is replaced; default 1 s, which a busy host may exceed without a failure. */
  readonly downAfterMs?: number;
  /** Issues a certificate for 127.0.0.1 to each server; all connections then use TLS. */
  readonly certificateAuthority?: Certificate;
}

/** Redis servers that elect a new primary when the primary fails. */
export interface RedisGroup extends AsyncDisposable {
  /** URL without user and password. */
  readonly url: string;
  /** Two servers: one primary and its replica. */
  readonly pair: readonly [Redis, Redis];
  /** The current primary of the pair. */
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
  /** Whether the server reports the role of a primary; false if it does not respond. */
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

/** Returns the server of the pair with this role. Waits while both servers report the same role. */
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
  /** PEM of the authority; enables TLS. */
  readonly ca?: string | undefined;
}

/** The reply to a PING sent after the command marks the end of the command's reply: Sentinel has no QUIT. */
const END_MARKER = 'that-is-all';
const END_REPLY = `$${END_MARKER.length}\r\n${END_MARKER}\r\n`;

/** Sends one command and returns the raw reply (RESP 2); an error reply rejects. Words must not contain spaces. */
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
