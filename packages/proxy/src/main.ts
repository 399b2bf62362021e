// The entry point of the proxy process: the data plane of one node.
import { isIP } from 'node:net';
import { availableParallelism, hostname } from 'node:os';
import { formatDuration, parseCidr, parseDuration } from '@weir/model/data-plane';
import {
  ADMIN_TOKEN_FORMAT,
  boolean,
  createLogger,
  createProbeSocket,
  duration,
  Health,
  hostPortOrOff,
  integer,
  list,
  logLevel,
  oneOf,
  optional,
  packageVersion,
  parseConfig,
  path,
  runProcess,
  type SettingFormat,
  setting,
  text,
} from '@weir/runtime';
import {
  FLEET_NAME_FORMAT,
  FLEET_SECRET_FORMAT,
  openRedisStore,
  REDIS_SETTINGS,
  rethrowRefusedAsUsage,
  type Store,
  withRedisAccess,
} from '@weir/store';
import { trustedProxyWarnings } from './protocol/trusted-proxy-warnings.ts';
import { kernelWarnings } from './status/host-warnings.ts';
import { type RunningProxy, startProxy } from './supervisor/start-proxy.ts';
import { DEFAULT_TLS, DEFAULT_TRANSPORT, TLS_KINDS, TRANSPORT_KINDS } from './transport/choose-transport.ts';

/** A DNS subdomain of RFC 1123, as the API server requires. */
const NODE_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i;
const ADDRESS: SettingFormat<string> = {
  allowed: 'an IP address',
  parse: (raw) => (isIP(raw.trim()) === 0 ? undefined : raw.trim()),
};
const CIDR: SettingFormat<string> = {
  allowed: 'a network such as 192.0.2.0/24',
  parse: (raw) => parseCidr(raw)?.text,
};

const CONFIG = {
  fleet: text('WEIR_FLEET', { default: 'weir', ...FLEET_NAME_FORMAT }),
  ...REDIS_SETTINGS,
  node: text('WEIR_NODE', { default: hostname(), pattern: NODE_NAME, allowed: 'the name of a Kubernetes node' }),
  addresses: optional(list('WEIR_ADDRESSES', ADDRESS)),
  workers: integer('WEIR_WORKERS', { default: availableParallelism(), min: 1, max: 256 }),
  admin: hostPortOrOff('WEIR_ADMIN', { default: { host: '127.0.0.1', port: 8687 } }),
  adminTls: optional(path('WEIR_ADMIN_TLS')),
  adminToken: optional(setting('WEIR_ADMIN_TOKEN', ADMIN_TOKEN_FORMAT)),
  probeSocket: optional(path('WEIR_PROBE_SOCKET')),
  drainMs: duration('WEIR_DRAIN', {
    grammar: { parseDuration, formatDuration },
    default: 30_000,
    maxMs: 3_600_000,
  }),
  trustProxyProtocol: optional(list('WEIR_TRUST_PROXY_PROTOCOL', CIDR)),
  trustForwarded: optional(list('WEIR_TRUST_FORWARDED', CIDR)),
  writeForwarded: boolean('WEIR_WRITE_FORWARDED', { default: false }),
  topClients: boolean('WEIR_TOP_CLIENTS', { default: false }),
  fleetSecret: optional(setting('WEIR_FLEET_SECRET', FLEET_SECRET_FORMAT)),
  stateDirectory: optional(path('WEIR_STATE')),
  transport: oneOf('WEIR_TRANSPORT', TRANSPORT_KINDS, { default: DEFAULT_TRANSPORT }),
  tls: oneOf('WEIR_TLS', TLS_KINDS, { default: DEFAULT_TLS }),
  level: logLevel('WEIR_LOG_LEVEL'),
};

/** The time for the steps after the drain. These steps reset the remaining connections and send the last usage. */
const CLOSE_MARGIN_MS = 15_000;

await runProcess('weir-proxy', (control) => {
  const { redis, level, probeSocket, ...options } = withRedisAccess(parseConfig(CONFIG, process.env));
  const log = createLogger({ name: 'proxy', level });
  let store: Store;
  let proxy: RunningProxy | undefined;
  const health = new Health();
  health.add('start', 'ready', () => (proxy === undefined ? 'the proxy is starting' : undefined));
  return {
    log,
    parts: [
      // Comes first, so that the probe socket answers from the start of the process to its end.
      ...(probeSocket === undefined ? [] : [createProbeSocket({ path: probeSocket, health, log })]),
      {
        name: 'store',
        async start() {
          const { fleet } = options;
          store = await openRedisStore({ ...redis, fleet, log: log.child({ part: 'store' }) }).catch(
            rethrowRefusedAsUsage,
          );
        },
        close: () => store.close(),
      },
      {
        name: 'proxy',
        async start() {
          if (options.stateDirectory === undefined)
            log.warn(
              { advice: 'set WEIR_STATE to a directory that outlives the process' },
              'this proxy has no state directory: if it is killed while Redis is unreachable, the usage since Redis became unreachable is lost',
            );
          const hostWarnings = await kernelWarnings(options.transport);
          for (const advice of hostWarnings) log.warn({ advice }, 'a kernel setting of this host should be changed');
          for (const advice of trustedProxyWarnings(options))
            log.warn({ advice }, 'clients can claim any source address');
          proxy = await startProxy({
            ...options,
            version: packageVersion(import.meta.url),
            hostWarnings,
            store,
            health,
            log,
            onDrain: () => control.stop(),
          });
          proxy.failed.catch((error) => control.fail(error));
        },
        close: () => proxy?.close(),
      },
    ],
    closeTimeoutMs: options.drainMs + CLOSE_MARGIN_MS,
  };
});
