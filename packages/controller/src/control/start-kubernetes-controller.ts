import { hostname } from 'node:os';
import type { KubeConfig } from '@kubernetes/client-node';
import type { FleetSettings } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Store } from '@weir/store';
import { KubeApi } from '../kubernetes/kube-api.ts';
import { standForElection } from '../leader/lease-election.ts';
import { PolicyStatusKeeper } from '../policy/policy-status-keeper.ts';
import { EventWriter } from '../status/event-writer.ts';
import { KubernetesStatus } from '../status/kubernetes-status.ts';
import { KubernetesSuspensions } from '../suspension/kubernetes-suspensions.ts';
import { KubernetesUsage } from '../usage/kubernetes-usage.ts';
import { openKubernetesSource } from '../watch/kubernetes/kubernetes-source.ts';
import { type Controller, startController } from './start-controller.ts';

export interface KubernetesControllerOptions {
  readonly kubeConfig: KubeConfig;
  readonly store: Store;
  readonly settings: FleetSettings;
  readonly fleet: string;
  /** Where the Lease is. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of this process among its replicas; default: host and process. */
  readonly identity?: string;
}

export interface KubernetesController extends Controller {
  readonly isLeader: boolean;
  /** Everything was read at least once. */
  readonly isSynced: boolean;
}

/** The parts of a controller on an API server, joined. An API server that is away is waited for; closing leaves the store open. */
export function startKubernetesController(options: KubernetesControllerOptions): KubernetesController {
  const { kubeConfig, store, settings, clock, log, fleet, namespace } = options;
  const identity = options.identity ?? `${hostname()}_${process.pid}_${crypto.randomUUID().slice(0, 8)}`;
  const api = new KubeApi(kubeConfig);
  const events = new EventWriter({ api, clock, log: log.child({ part: 'events' }), instance: identity });
  const status = new KubernetesStatus({ api, events, clock, log: log.child({ part: 'status' }) });
  const policies = new PolicyStatusKeeper({ api, settings, clock, log: log.child({ part: 'policies' }) });
  const source = openKubernetesSource({
    api,
    clock,
    log: log.child({ part: 'watch' }),
    onService: (key, raw) => status.note(key, raw),
    onPolicy: (key, raw) => policies.note(key, raw),
  });
  const leader = standForElection({
    api,
    namespace,
    name: `weir-controller-${fleet}`,
    identity,
    clock,
    log: log.child({ part: 'leader' }),
  });
  const suspensions = new KubernetesSuspensions({ api });
  const archive = new KubernetesUsage({ api, log: log.child({ part: 'usage' }) });
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
      await leader.close();
      await source.close();
      api.close();
    },
  };
}
