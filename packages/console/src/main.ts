// The console process: serves the HTTP API and the page from the store of one fleet.
import type { KubeConfig } from '@kubernetes/client-node';
import {
  ADMIN_TOKEN_FORMAT,
  boolean,
  systemClock as clock,
  createLogger,
  hostPort,
  logLevel,
  oneOf,
  optional,
  parseConfig,
  path,
  runProcess,
  setting,
  text,
  UsageError,
} from '@weir/runtime';
import {
  FLEET_NAME_FORMAT,
  openRedisStore,
  REDIS_SETTINGS,
  rethrowRefusedAsUsage,
  type Store,
  withRedisAccess,
} from '@weir/store';
import { findKubeconfig } from './kubernetes/api-client.ts';
import { type ConsoleAuth, type RunningConsole, startConsole } from './start-console.ts';
import { kubernetesSuspensionWriter } from './suspensions/kubernetes-suspension-writer.ts';
import { patientSuspensionStore } from './suspensions/patient-suspension-store.ts';
import { storeSuspensionWriter } from './suspensions/store-suspension-writer.ts';

/** The host names that a certificate can have, except wildcards. */
const HOST_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i;

const CONFIG = {
  fleet: text('WEIR_FLEET', { default: 'weir', ...FLEET_NAME_FORMAT }),
  ...REDIS_SETTINGS,
  listen: hostPort('WEIR_CONSOLE', { default: { host: '127.0.0.1', port: 8686 } }),
  auth: oneOf('WEIR_CONSOLE_AUTH', ['none', 'kubernetes'], { default: 'none' }),
  tls: optional(path('WEIR_CONSOLE_TLS')),
  isAggregated: boolean('WEIR_CONSOLE_AGGREGATED', { default: false }),
  adminToken: optional(setting('WEIR_ADMIN_TOKEN', ADMIN_TOKEN_FORMAT)),
  adminCa: optional(path('WEIR_ADMIN_CA')),
  adminServerName: optional(text('WEIR_ADMIN_SERVER_NAME', { pattern: HOST_NAME, allowed: 'a host name' })),
  level: logLevel('WEIR_LOG_LEVEL'),
};

const NO_KUBECONFIG_WARNING =
  'no kubeconfig: the console writes Suspensions to the store only and cannot resume Suspensions that are Kubernetes objects; set KUBECONFIG';

await runProcess('weir-console', (control) => {
  const config = withRedisAccess(parseConfig(CONFIG, process.env));
  const { fleet, redis, listen, tls, level, adminToken: token, adminCa: ca, adminServerName: serverName } = config;
  const log = createLogger({ name: 'console', level });
  const kubeconfig = findKubeconfig(process.env);
  const auth = authFor(config, kubeconfig);
  if (kubeconfig === undefined) log.warn(NO_KUBECONFIG_WARNING);
  let store: Store;
  let running: RunningConsole;
  return {
    log,
    parts: [
      {
        name: 'store',
        async start() {
          store = await openRedisStore({
            ...redis,
            fleet,
            privateKeyAccess: 'none',
            log: log.child({ part: 'store' }),
            clock,
          }).catch(rethrowRefusedAsUsage);
        },
        close: () => store.close(),
      },
      {
        name: 'console',
        async start() {
          const suspensionStore = patientSuspensionStore(store.suspensions, clock);
          const suspensionWriter =
            kubeconfig === undefined
              ? storeSuspensionWriter({ suspensionStore, clock })
              : kubernetesSuspensionWriter({ kubeconfig, suspensionStore, clock, log });
          const proxyAdmin = { token, ca, serverName };
          running = await startConsole({
            store,
            fleet,
            ...listen,
            suspensionWriter,
            auth,
            tls,
            proxyAdmin,
            clock,
            log,
          });
          running.failed.catch((error) => control.fail(error));
        },
        close: () => running.close(),
      },
    ],
  };
});

interface AuthSettings {
  readonly auth: ConsoleAuth['kind'];
  readonly tls: string | undefined;
  readonly isAggregated: boolean;
}

function authFor({ auth: kind, tls, isAggregated }: AuthSettings, kubeconfig: KubeConfig | undefined): ConsoleAuth {
  if (isAggregated && (kind === 'none' || tls === undefined)) {
    throw new UsageError('WEIR_CONSOLE_AGGREGATED=true needs WEIR_CONSOLE_AUTH=kubernetes and WEIR_CONSOLE_TLS');
  }
  if (kind === 'none') return { kind };
  if (kubeconfig !== undefined) return { kind, kubeconfig, isAggregated };
  throw new UsageError(
    'WEIR_CONSOLE_AUTH=kubernetes needs an API server that checks tokens; run the console in the cluster, or set KUBECONFIG',
  );
}
