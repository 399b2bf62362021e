// The uninstall process (the chart's pre-delete hook): removes what the controllers of a release have written, then ends.
import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import {
  systemClock as clock,
  createLogger,
  errorMessage,
  logLevel,
  optional,
  parseConfig,
  runProcess,
  text,
} from '@weir/runtime';
import { FLEET_NAME_FORMAT, openRedisStore, REDIS_SETTINGS, type Store, withRedisAccess } from '@weir/store';
import { KubeApi } from './kubernetes/kube-api.ts';
import { loadKubeConfig } from './kubernetes/kube-config.ts';
import { DNS_LABEL } from './parse/fields.ts';
import { uninstallFleet } from './uninstall/uninstall-fleet.ts';

const CONFIG = {
  fleet: text('WEIR_FLEET', { default: 'weir', ...FLEET_NAME_FORMAT }),
  ...REDIS_SETTINGS,
  level: logLevel('WEIR_LOG_LEVEL'),
  loadBalancerClass: text('WEIR_LOAD_BALANCER_CLASS', { default: DEFAULT_FLEET_SETTINGS.loadBalancerClass }),
  namespace: text('WEIR_NAMESPACE', {
    default: 'weir-system',
    pattern: /^[a-z0-9-]{1,63}$/,
    allowed: DNS_LABEL.allowed,
  }),
  deployment: optional(text('WEIR_DEPLOYMENT')),
} as const;

await runProcess('weir-uninstall', (control) => {
  const { fleet, redis, level, loadBalancerClass, namespace, deployment } = withRedisAccess(
    parseConfig(CONFIG, process.env),
  );
  const log = createLogger({ name: 'uninstall', level });
  const api = new KubeApi(loadKubeConfig());
  let store: Store | undefined;
  return {
    log,
    parts: [
      {
        name: 'store',
        async start() {
          store = await openRedisStore({ ...redis, fleet, log: log.child({ part: 'store' }), clock }).catch((error) => {
            log.warn(
              { reason: errorMessage(error) },
              'Redis refused the connection, so the proxies keep their listeners until Helm deletes the proxies',
            );
            return undefined;
          });
        },
        close: () => store?.close(),
      },
      {
        name: 'uninstall',
        async start(signal) {
          await uninstallFleet({
            api,
            fleet,
            loadBalancerClass,
            namespace,
            deployment: deployment === undefined ? undefined : { namespace, name: deployment },
            store,
            clock,
            log,
            signal,
          });
          control.stop();
        },
        close: () => api.close(),
      },
    ],
  };
});
