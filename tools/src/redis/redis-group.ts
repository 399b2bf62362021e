import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Certificate, eventually, makeCertificate } from '@weir/testkit';
import { type Redis, type RedisOptions, startRedis } from './redis.ts';

export interface RedisGroupOptions {
  /** Of Redis, and what the servers say to each other. */
  readonly password?: string;
  readonly sentinelPassword?: string;
  /** A primary that is silent for so long is replaced; default 1 s, which a busy machine may take for death. */
  readonly downAfterMs?: number;
  /** Each server has a certificate of it for 127.0.0.1; all speak TLS. */
  readonly certificateAuthority?: Certificate;
}

/** Servers that replace a primary which is gone. */
export interface RedisGroup extends AsyncDisposable {
  /** Without user and password. */
  readonly url: string;
  /** Those two of which one is the primary, and the other follows it. */
  readonly pair: readonly [Redis, Redis];
  /** Of the pair. */
  primary(): Promise<Redis>;
  replica(): Promise<Redis>;
  /** To a server of it. */
  command(server: Pick<Redis, 'host' | 'port'>, command: string): Promise<string>;
  /** Resolves when the group would survive the loss of its primary, and says so. */
  waitUntilHealthy(): Promise<void>;
  close(): Promise<void>;
}

/** How the servers of a group are started, and asked. */
export interface RedisLauncher {
  start(options?: RedisOptions): Promise<Redis>;
  command(server: Pick<Redis, 'host' | 'port'>, command: string, password?: string): Promise<string>;
  /** Whether it says so itself; false also while it does not answer. */
  isPrimary(server: Redis): Promise<boolean>;
  close(): Promise<void>;
}

export function redisLauncher({ password, certificateAuthority }: RedisGroupOptions): RedisLauncher {
  const started: Redis[] = [];
  const say: RedisLauncher['command'] = (server, command, itsPassword = password) =>
    sendRedisCommand(server, command, { password: itsPassword, ca: certificateAuthority?.certificate });
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
    command: say,
    isPrimary: async (server) => {
      const role = await say(server, 'ROLE').catch(() => '');
      return role.includes('\r\nmaster\r\n');
    },
    close: async () => void (await Promise.all(started.map((server) => server.close()))),
  };
}

export function redisCertificate(issuer: Certificate): Certificate {
  return makeCertificate({ name: 'redis', names: ['127.0.0.1', 'localhost'], issuer });
}

/** Of the pair, the one that is a primary alone: there may be two for a while. */
export async function serverWithRole(
  maker: RedisLauncher,
  pair: readonly [Redis, Redis],
  wanted: 'primary' | 'replica',
): Promise<Redis> {
  return eventually(
    async () => {
      const [first, second] = await Promise.all(pair.map((server) => maker.isPrimary(server)));
      if (first === second) throw new Error('not exactly one of the pair is the primary');
      return pair[first === (wanted === 'primary') ? 0 : 1];
    },
    { timeoutMs: 30_000 },
  );
}

// One command to a Redis, for fixtures: the testkit has no client of Redis.
export interface RedisCommandOptions {
  readonly password?: string | undefined;
  /** PEM; by TLS then. */
  readonly ca?: string | undefined;
}

/** The answer to a PING behind the command: a sentinel knows no QUIT. */
const END_MARKER = 'that-is-all';
const END_REPLY = `$${END_MARKER.length}\r\n${END_MARKER}\r\n`;

/** What it answers, as it comes over the wire (RESP 2); an error rejects. A word must not hold blanks. */
export async function sendRedisCommand(
  { host, port }: Pick<Redis, 'host' | 'port'>,
  command: string,
  { password, ca }: RedisCommandOptions = {},
): Promise<string> {
  const socket = ca === undefined ? connectPlain({ host, port }) : connectTls({ host, port, ca });
  try {
    const { promise: complete, resolve } = Promise.withResolvers<void>();
    let said = '';
    socket.setEncoding('utf8').on('data', (text) => {
      said += text;
      if (said.endsWith(END_REPLY)) resolve();
    });
    socket.setTimeout(5_000, () => socket.destroy(new Error(`${host}:${port} does not answer ${command}`)));
    const auth = password === undefined ? '' : `AUTH ${password}\r\n`;
    socket.write(`${auth}${command}\r\nPING ${END_MARKER}\r\n`);
    await Promise.race([complete, once(socket, 'close')]);
    const answer = said.slice(password === undefined ? 0 : said.indexOf('\n') + 1).replace(END_REPLY, '');
    if (answer.startsWith('-')) throw new Error(`${host}:${port} says to ${command}: ${answer.trim()}`);
    return answer;
  } finally {
    socket.destroy();
  }
}
