import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate } from '@weir/testkit';
import { freePort, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '../programs/require-program.ts';

export type RedisOptions = {
  readonly host?: string;
  readonly port?: number;
  /** Data directory; default: a temporary directory that `close` removes. */
  readonly dir?: string;
  /** Whether acknowledged writes survive `restart`, even with SIGKILL; default true. */
  readonly appendonly?: boolean;
  readonly password?: string;
  /** Server certificate; the server then accepts TLS connections only. */
  readonly certificate?: Certificate;
  /** Additional lines of redis.conf. */
  readonly settings?: readonly string[];
  /** Whether the process is a Redis server or a sentinel; default `server`. */
  readonly mode?: 'server' | 'sentinel';
};

export type Redis = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Overwrites the certificate files. Returns settings for `CONFIG SET`, with which the server reads the new files. */
  replaceCertificate(certificate: Certificate): Readonly<Record<string, string>>;
  /** Restarts on the same port with the same data. */
  restart(options?: { signal?: NodeJS.Signals }): Promise<void>;
  /** Restarts on the same port without data. */
  wipe(): Promise<void>;
  /** Stops the server. `start` starts the server again on the same port and with the same data. */
  stop(options?: { signal?: NodeJS.Signals }): Promise<void>;
  start(): Promise<void>;
  /** Stops the process with SIGSTOP. Connections stay open, but the server does not respond until `resume`. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
};

/** Starts a real redis-server without eviction, as in production. */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const { host = '127.0.0.1', password, certificate, mode = 'server' } = options;
  const home = temporaryDirectory('redis');
  const dir = options.dir ?? join(home.path, 'data');
  mkdirSync(dir, { recursive: true });
  const replaceCertificate = ({ chain, key, issuer }: Certificate): Record<string, string> =>
    writeSettingFiles(home.path, {
      'tls-cert-file': ['tls.crt', chain],
      'tls-key-file': ['tls.key', key],
      // The server verifies the certificates of other servers of its group with this authority.
      'tls-ca-cert-file': ['ca.crt', issuer?.certificate ?? chain],
    });
  const tls = certificate === undefined ? undefined : { 'tls-auth-clients': 'no', ...replaceCertificate(certificate) };
  const configuration = join(home.path, 'redis.conf');
  let port = options.port ?? 0;
  let server: SpawnedProcess;

  const launch = (): Promise<SpawnedProcess> => launchRedis(configuration, mode);
  const start = async (): Promise<void> => {
    server = await launch();
  };
  const stop = async ({ signal = 'SIGTERM' as NodeJS.Signals } = {}): Promise<void> => void (await server.stop(signal));
  const close = async (): Promise<void> => {
    await stop({ signal: 'SIGKILL' });
    await home.close();
  };

  try {
    for (let attempt = 1; ; attempt++) {
      if (options.port === undefined) port = await freePort(host);
      writeFileSync(configuration, redisConfig({ ...options, host, dir }, port, tls));
      try {
        server = await launch();
        break;
      } catch (error) {
        if (options.port !== undefined || attempt === 5 || !/Address already in use/.test(String(error))) throw error;
      }
    }
  } catch (error) {
    await home.close();
    throw error;
  }

  return {
    host,
    port,
    url: `${certificate === undefined ? 'redis' : 'rediss'}://${password ? `:${encodeURIComponent(password)}@` : ''}${host}:${port}`,
    get pid() {
      return server.pid;
    },
    replaceCertificate,
    async restart(stopOptions) {
      await stop(stopOptions);
      await start();
    },
    async wipe() {
      await stop({ signal: 'SIGKILL' });
      rmSync(dir, { recursive: true, force: true });
      mkdirSync(dir, { recursive: true });
      await start();
    },
    stop,
    start,
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function writeSettingFiles(
  directory: string,
  files: Readonly<Record<string, readonly [string, string]>>,
): Record<string, string> {
  const paths: Record<string, string> = {};
  for (const [setting, [name, text]] of Object.entries(files)) {
    paths[setting] = join(directory, name);
    writeFileSync(paths[setting], text);
  }
  return paths;
}

function redisConfig(
  { host = '', dir = '', password, appendonly = true, mode, settings = [] }: RedisOptions,
  port: number,
  tls: Readonly<Record<string, string>> | undefined,
): string {
  const serverSettings = { save: '', appendonly: appendonly ? 'yes' : 'no', 'maxmemory-policy': 'noeviction' };
  const lines = Object.entries({
    bind: host,
    dir,
    ...(tls === undefined ? { port: String(port) } : { port: '0', 'tls-port': String(port), ...tls }),
    ...(mode === 'sentinel' ? {} : serverSettings),
    ...(password === undefined ? {} : { requirepass: password }),
  });
  return [...lines.map(([name, value]) => `${name} ${JSON.stringify(value)}`), ...settings, ''].join('\n');
}

function launchRedis(configuration: string, mode: 'server' | 'sentinel'): Promise<SpawnedProcess> {
  return spawnProcess({
    name: 'redis-server',
    command: programPath('redis-server'),
    args: [configuration, ...(mode === 'sentinel' ? ['--sentinel'] : [])],
    readyWhen: mode === 'sentinel' ? /Sentinel ID is/ : /Ready to accept connections/,
  });
}
