// The console as a process: HTTP API and page over the store of a fleet.
import {
  systemClock as clock,
  createLogger,
  hostPort,
  logLevel,
  parseConfig,
  runProcess,
  text,
  url,
} from '@weir/runtime';
import { FLEET_NAME, openRedisStore, refusedAsUsage, type Store } from '@weir/store';
import { type RunningConsole, startConsole } from './start-console.ts';
import { findKubeconfig } from './suspensions/find-kubeconfig.ts';
import { kubernetesSuspensions } from './suspensions/kubernetes-suspensions.ts';
import { storeSuspensions } from './suspensions/store-suspensions.ts';

const CONFIG = {
  fleet: text('WEIR_FLEET', { default: 'weir', ...FLEET_NAME }),
  redis: url('WEIR_REDIS_URL', { schemes: ['redis', 'rediss'] }),
  listen: hostPort('WEIR_CONSOLE', { default: { host: '127.0.0.1', port: 8686 } }),
  level: logLevel('WEIR_LOG_LEVEL'),
};

const WITHOUT_KUBECONFIG =
  'no kubeconfig: Suspensions go to the store alone, and those that are objects of the cluster cannot be lifted here; set KUBECONFIG';

await runProcess('weir-console', (control) => {
  const { fleet, redis, listen, level } = parseConfig(CONFIG, process.env);
  const log = createLogger({ name: 'console', level });
  const kubeconfig = findKubeconfig(process.env);
  if (kubeconfig === undefined) log.warn(WITHOUT_KUBECONFIG);
  let store: Store;
  let running: RunningConsole;
  return {
    log,
    parts: [
      {
        name: 'store',
        async start() {
          store = await openRedisStore({
            url: redis,
            fleet,
            keys: 'none',
            log: log.child({ part: 'store' }),
            clock,
          }).catch(refusedAsUsage);
        },
        close: () => store.close(),
      },
      {
        name: 'console',
        async start() {
          const { cutoffs } = store;
          const suspensions =
            kubeconfig === undefined
              ? storeSuspensions({ cutoffs, clock })
              : kubernetesSuspensions({ kubeconfig, cutoffs, clock, log });
          running = await startConsole({ store, fleet, ...listen, suspensions, auth: { kind: 'none' }, clock, log });
          running.failed.catch((error) => control.fail(error));
        },
        close: () => running.close(),
      },
    ],
  };
});
