import { hostname } from 'node:os';
import type { KubeConfig } from '@kubernetes/client-node';
import { type FleetSettings, isOwned } from '@weir/model';
import { type Clock, type Logger, type Metrics, Sealer, type Secret, UsageError } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { Store } from '@weir/store';
import { KubeApi } from '../kubernetes/kube-api.ts';
import { startLeaderElection } from '../leader/leader-election.ts';
import { leaderOnlyApi } from '../leader/leadership.ts';
import { PolicyStatusReconciler } from '../policies/policy-status-reconciler.ts';
import { RuleEvents } from '../rules/rule-events.ts';
import { EventWriter } from '../status/event-writer.ts';
import { KubernetesStatus } from '../status/kubernetes-status.ts';
import { fieldManagerFor } from '../status/status-writer.ts';
import { KubernetesSuspensionObjects } from '../suspensions/kubernetes-suspension-objects.ts';
import { KubernetesUsageArchive } from '../usage/kubernetes-usage-archive.ts';
import { KubernetesSource } from '../watch/kubernetes/kubernetes-source.ts';
import type { ReadableSecrets } from '../watch/kubernetes/secret-watches.ts';
import type { Controller } from './controller.ts';
import { startController } from './controller.ts';
import { addControllerMetrics } from './controller-metrics.ts';

export interface KubernetesControllerOptions {
  readonly kubeConfig: KubeConfig;
  readonly store: Store;
  readonly settings: FleetSettings;
  /** Seals private keys. The proxies need the same secret to open the keys. Required if `settings.secretAccess` allows Secrets. */
  readonly fleetSecret?: Secret | undefined;
  /** Whether served Services get the cleanup finalizer; default false. */
  readonly cleanupFinalizer?: boolean;
  readonly fleet: string;
  /** The namespace of the Lease that elects the leader. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The name of this replica in the Lease; default: host name, process id and a random part. */
  readonly identity?: string;
  /** The registry to which the metrics are added. By default the metrics are not exported. */
  readonly metrics?: Metrics;
}

export interface KubernetesController extends Controller {
  readonly isLeader: boolean;
  /** Whether every watched kind has been read at least once. */
  readonly isSynced: boolean;
}

/**
 * Starts a controller that reads objects from an API server. If the API server is unreachable, the controller waits. `close` leaves
 * the store open.
 */
export function startKubernetesController(options: KubernetesControllerOptions): KubernetesController {
  const { kubeConfig, store, settings, clock, log, fleet, namespace } = options;
  const secrets = readableSecrets(options);
  const identity = options.identity ?? `${hostname()}_${process.pid}_${crypto.randomUUID().slice(0, 8)}`;
  const metrics = addControllerMetrics(options.metrics ?? createMetrics(), clock);
  const api = new KubeApi(kubeConfig, { onResponse: metrics.api });
  const leader = startLeaderElection({
    api,
    namespace,
    name: `weir-controller-${fleet}`,
    identity,
    clock,
    log: log.child({ part: 'leader' }),
  });
  const leaderApi = leaderOnlyApi(api, leader);
  const events = new EventWriter({ api: leaderApi, clock, log: log.child({ part: 'events' }), instance: identity });
  const status = new KubernetesStatus({
    api: leaderApi,
    events,
    loadBalancerClass: settings.loadBalancerClass,
    cleanupFinalizer: options.cleanupFinalizer === true,
    clock,
    log: log.child({ part: 'status' }),
  });
  const policies = new PolicyStatusReconciler({
    api: leaderApi,
    settings,
    clock,
    log: log.child({ part: 'policies' }),
  });
  const ruleEvents = new RuleEvents(
    new EventWriter({ api: leaderApi, clock, log: log.child({ part: 'rules' }), instance: identity }),
    clock,
  );
  const source = new KubernetesSource({
    api,
    clock,
    log: log.child({ part: 'watch' }),
    onService: (key, raw) => status.observe(key, raw),
    onPolicy: (key, raw) => policies.observe(key, raw),
    observer: metrics.watch,
    statusManager: fieldManagerFor(settings.loadBalancerClass),
    ...(secrets && { secrets }),
    isOwned: (service) => isOwned(service, settings),
  });
  const suspensions = new KubernetesSuspensionObjects({ api: leaderApi });
  const archive = new KubernetesUsageArchive({ api: leaderApi, fleet, log: log.child({ part: 'usage' }) });
  const controller = startController({
    source,
    store,
    settings,
    clock,
    log,
    leader,
    status,
    archive,
    suspensions,
    ruleReporter: ruleEvents,
    metrics,
  });
  policies.start({ source, leader });
  return {
    ...controller,
    get isLeader() {
      return leader.isLeader;
    },
    get isSynced() {
      return source.isSynced;
    },
    async close() {
      await Promise.all([controller.close(), policies.close()]);
      await ruleEvents.close();
      await leader.close();
      await source.close();
      api.close();
    },
  };
}

function readableSecrets({ settings, fleetSecret }: KubernetesControllerOptions): ReadableSecrets | undefined {
  const { secretAccess: access = { kind: 'none' } } = settings;
  if (access.kind === 'none') return undefined;
  if (fleetSecret === undefined)
    throw new UsageError('missing fleet secret: a controller that reads Secrets needs it to seal private keys');
  return { access, sealer: new Sealer(fleetSecret) };
}
