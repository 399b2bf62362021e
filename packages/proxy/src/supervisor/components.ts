// Creates the parts of a proxy's main thread and connects them. A callback may refer to parts that are created after
// it, because no callback runs before the supervisor starts the worker pool.
import { join } from 'node:path';
import type { RouteKey, Suspension, TablePosition } from '@weir/model/data-plane';
import { type Loop, standardOutput } from '@weir/runtime';
import { Sealer } from '@weir/runtime/sealing';
import { LogHub } from '../access-log/log-hub.ts';
import type { DescriptorCounter } from '../limits/descriptor-count.ts';
import { descriptorLimit, descriptorsForListeners } from '../limits/descriptor-limit.ts';
import { LeaseClient } from '../limits/lease-client.ts';
import { LimiterRegistry } from '../limits/limiter-registry.ts';
import { SlotRegistry } from '../metering/slot-registry.ts';
import { UsageFlusher } from '../metering/usage-flusher.ts';
import type { AdminPort } from '../status/admin-port.ts';
import { createHeartbeatLoop } from '../status/heartbeat.ts';
import { createProxyAdmin } from '../status/proxy-admin.ts';
import { createWorkerLiveness, ProxyStatus, type WorkerLiveness } from '../status/proxy-status.ts';
import { createMissingSecretWarning, TlsKeyChecker } from '../status/tls-key-checks.ts';
import { NodeTakeover } from '../takeover/node-takeover.ts';
import { TakeoverActions } from '../takeover/takeover-actions.ts';
import { HealthMonitor } from '../upstream/health/health-monitor.ts';
import { DELAY_QUANTILES, type EventLoopDelayMonitor, startEventLoopDelayMonitor } from '../worker/event-loop-delay.ts';
import { ClientReports } from './client-reports.ts';
import { ListenerReconciler } from './listeners/listener-reconciler.ts';
import { portProbeFor } from './listeners/port-probe.ts';
import { LocalSuspensions } from './local-suspensions.ts';
import type { ProxySettings } from './proxy-settings.ts';
import type { StateDirectory } from './state-directory.ts';
import { StateSaver } from './state-files.ts';
import { MaglevTables } from './table/maglev-tables.ts';
import { PropagationLatency } from './table/propagation.ts';
import { Suspensions } from './table/suspensions.ts';
import { TableDistributor } from './table/table-distributor.ts';
import { WorkerPool } from './worker-pool.ts';
import { WORKER_ENTRY } from './worker-thread.ts';

export interface ProxyComponents {
  readonly slots: SlotRegistry;
  readonly descriptors: DescriptorCounter;
  readonly leases: LeaseClient;
  readonly pool: WorkerPool;
  readonly table: TableDistributor;
  readonly maglev: MaglevTables;
  readonly health: HealthMonitor;
  readonly suspensions: Suspensions;
  /** Undefined if the proxy has no state directory. */
  readonly localSuspensions: LocalSuspensions | undefined;
  readonly listeners: ListenerReconciler;
  readonly takeover: NodeTakeover;
  readonly flusher: UsageFlusher;
  readonly stateSaver: StateSaver | undefined;
  readonly eventLoopDelay: EventLoopDelayMonitor;
  readonly liveness: WorkerLiveness;
  readonly status: ProxyStatus;
  readonly heartbeatLoop: Loop;
  readonly admin: AdminPort | undefined;
  readonly accessLogs: LogHub;
}

export interface ComponentsOptions {
  /** The state from the disk. Undefined if the proxy has no state directory. */
  readonly state: StateDirectory | undefined;
  /** Resolves when the first table is in effect. Rejects if the proxy closes first. */
  readonly ready: Promise<void>;
  readonly isDraining: () => boolean;
  /** Called when the table, the suspensions, the shares of limits, a listener, a worker or the health of an endpoint has changed. */
  readonly onStateChange: () => void;
}

export function createComponents(
  settings: ProxySettings,
  { state, ready, isDraining, onStateChange }: ComponentsOptions,
): ProxyComponents {
  const { fleet, node, store, clock, log, workers, fleetSecret } = settings;
  const startedAt = clock.now();

  // The callbacks between the parts.
  const onRoutesChanged = (keys: readonly RouteKey[]): void => {
    maglev.onRoutesChanged(keys);
    health.onRoutesChanged(keys);
    listeners.reconcile(keys);
    warnOfMissingSecret(keys);
  };
  const onSuspensionsChanged = (inForce: readonly Suspension[]): void => {
    listeners.setSuspensions(inForce);
    onStateChange();
  };
  const onMarkReached = (): void => {
    table.onMarkReached(pool.reached);
    suspensions.onMarkReached(pool.reached);
    onStateChange();
  };
  const onWorkerEnd = (worker: number): void => {
    listeners.onWorkerEnd(worker);
    health.draining.removeWorker(worker);
  };
  const tableReadyToServe = (): TablePosition | undefined => {
    const isUp = pool.live === workers && listeners.hasStarted && !isDraining();
    return isUp ? (table.applied ?? undefined) : undefined;
  };

  // The data path: the workers and the state that is sent to them.
  const slots = new SlotRegistry();
  const accessLogs = new LogHub(settings.accessLogOutput ?? standardOutput());
  const limits = new LimiterRegistry(workers);
  const { descriptors } = limits;
  const pool: WorkerPool = new WorkerPool({
    count: workers,
    node,
    entry: settings.workerEntry ?? WORKER_ENTRY,
    trustProxyProtocol: settings.trustProxyProtocol,
    trustForwarded: settings.trustForwarded,
    writeForwarded: settings.writeForwarded,
    countsClients: settings.topClients,
    fleetSecret,
    transport: settings.transport,
    tls: settings.tls,
    slots,
    limits,
    heapMb: settings.workerHeapMb,
    clock,
    log: log.child({ part: 'workers' }),
    commandsForNewWorker: (worker) => [
      table.commandForNewWorker(),
      ...maglev.commandsForNewWorker(),
      ...health.commandsForNewWorker(),
      suspensions.commandForNewWorker(),
      ...listeners.commandsForNewWorker(worker),
    ],
    onListening: (worker, listenerId) => listeners.onListening(worker, listenerId),
    onListenFailed: (_worker, listenerId, code) => listeners.onListenFailed(listenerId, code),
    onDrainingEndpoints: (worker, endpoints) => health.draining.update(worker, endpoints),
    onPassiveHealth: (reports) => health.recordPassiveHealth(reports),
    onAccessLog: (chunk, onTaken) => accessLogs.publish(chunk, onTaken),
    onClients: (worker, request, clients) => clientReports.onClients(worker, request, clients),
    onWorkerEnd,
    onMarkReached,
  });
  const clientReports = new ClientReports({ clock, workers: () => pool.ids, post: (command) => pool.post(command) });
  const propagation = new PropagationLatency(clock);
  const table: TableDistributor = new TableDistributor({
    node,
    slots,
    limits,
    pool,
    onRoutesChanged,
    onLimitsChanged() {
      leases.onLimitsChanged();
      onStateChange();
    },
    onApplied: (changedAt) => propagation.record(changedAt),
  });
  const { routes } = table.matcher;
  const post = pool.post.bind(pool);
  const maglev = new MaglevTables({ routes, clock, post });
  const health = new HealthMonitor({ routes, clock, post, onChange: onStateChange });
  const suspensions = new Suspensions({ pool, now: () => clock.now(), onChange: onSuspensionsChanged });
  const localSuspensions =
    state &&
    new LocalSuspensions({
      path: join(state.directory, 'local-suspensions.json'),
      node,
      clock,
      log: log.child({ part: 'local-suspensions' }),
      onChange(inForce) {
        suspensions.setLocal(inForce);
        onStateChange();
      },
    });
  const tlsKeys = new TlsKeyChecker(fleetSecret && new Sealer(fleetSecret));
  const warnOfMissingSecret = createMissingSecretWarning({ fleetSecret, routes: () => routes, log });
  const listeners = new ListenerReconciler({
    matcher: table.matcher,
    isPartial: () => table.isPartial,
    probe: portProbeFor(settings.transport),
    pool,
    maxListenerDescriptors: descriptorsForListeners(descriptorLimit()),
    clock,
    faultOf: (route) => tlsKeys.problemFor(route),
    onChange: onStateChange,
  });
  const takeover: NodeTakeover = new NodeTakeover({
    fleet,
    node,
    clock,
    log,
    listeners,
    actions: new TakeoverActions({ listeners, table, pool, store, onCede: () => admin?.release() }),
    tableReadyToServe,
    onNodeAcquired() {
      admin?.acquire();
      leases.releaseOthers();
    },
  });

  // Usage, state on the disk, and the status of the proxy.
  const flusher = new UsageFlusher({
    node,
    store,
    slots,
    clock,
    log: log.child({ part: 'flush' }),
    highestIncarnation: state?.highestIncarnation ?? 0,
    state,
    onIncarnation: () => {
      heartbeatLoop.trigger();
      leases.start();
    },
  });
  const leases: LeaseClient = new LeaseClient({
    node,
    store,
    registry: limits,
    limits: table.limits,
    clock,
    log: log.child({ part: 'leases' }),
    savedShares: state?.shares,
    incarnation: () => flusher.incarnation,
    isDraining: () => isDraining() || takeover.hasHandedOver,
    onMayOpenListeners: onStateChange,
  });
  const stateSaver =
    state &&
    new StateSaver({
      files: state.stateFiles,
      clock,
      log: log.child({ part: 'state' }),
      table: () => table.placed,
      suspensions: () => suspensions.known,
      shares: () => leases.savedShares,
    });
  const delaySeconds = new Float64Array(DELAY_QUANTILES.length);
  const eventLoopDelay = startEventLoopDelayMonitor(delaySeconds);
  const liveness = createWorkerLiveness(() => pool.live, clock);
  const status: ProxyStatus = new ProxyStatus({
    settings,
    startedAt,
    slots,
    table,
    suspensions,
    localSuspensions,
    listeners,
    takeover,
    flusher,
    pool,
    health,
    isDraining,
    warnings: () => [admin?.warning, leases.warning, flusher.warning],
    adminAddress: () => admin?.address,
  });
  const heartbeatLoop = createHeartbeatLoop({
    store: store.heartbeats,
    clock,
    log,
    heartbeat: () => status.heartbeat,
  });
  const admin: AdminPort | undefined = createProxyAdmin(settings, {
    metricsSources: { settings, slots, table, propagation, health, pool, descriptors, leases, flusher, delaySeconds },
    ready,
    view: () => status.view,
    isOtherProxyServing: () => takeover.isOtherProxyServing,
    accessLogs,
    clientReports: settings.topClients === true ? clientReports : undefined,
  });
  return {
    slots,
    descriptors,
    leases,
    pool,
    table,
    maglev,
    health,
    suspensions,
    localSuspensions,
    listeners,
    takeover,
    flusher,
    stateSaver,
    eventLoopDelay,
    liveness,
    status,
    heartbeatLoop,
    admin,
    accessLogs,
  };
}
