// What Prometheus sees of a controller. Few series: none per object, tenant or path.
import type { Clock, Metrics } from '@weir/runtime';
import type { ResponseObserver } from '../kubernetes/kube-api.ts';
import type { Leadership } from '../leader/leadership.ts';
import type { TableOutcome } from '../table/table-reconciler.ts';
import type { WatchObserver } from '../watch/kubernetes/reflector.ts';

export type LoopName = 'table' | 'fleet' | 'status' | 'suspensions' | 'ledger';

export interface ControllerMetrics {
  readonly api: ResponseObserver;
  readonly watch: WatchObserver;
  recordPublish(outcome: TableOutcome): void;
  recordPublishRetry(): void;
  /** Runs it, and notes how long that took, whatever came of it. */
  measure<T>(loop: LoopName, run: () => Promise<T>): Promise<T>;
  /** Returns the way to stop. */
  trackLeadership(leader: Pick<Leadership, 'isLeader' | 'onChange'>): () => void;
}

/** `empty`: the store holds just this already. `fenced`: it refused, for another claimed the lead after us. */
const PUBLISH_RESULTS: { readonly [O in TableOutcome]: 'published' | 'empty' | 'fenced' } = {
  published: 'published',
  'new-epoch': 'published',
  unchanged: 'empty',
  'not-leader': 'fenced',
  wiped: 'fenced',
};
const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60];

/** Once for each registry. */
export function addControllerMetrics(metrics: Metrics, clock: Clock): ControllerMetrics {
  return {
    api: apiMetrics(metrics),
    watch: watchMetrics(metrics),
    ...publishMetrics(metrics, clock),
    measure: loopMetrics(metrics, clock),
    trackLeadership: leaderMetrics(metrics),
  };
}

function apiMetrics(metrics: Metrics): ResponseObserver {
  const requests = metrics.counter({
    name: 'weir_controller_api_requests_total',
    help: 'Requests to the API server by method (watch: the opening of one) and class of the answer; none: there was none.',
    labels: ['verb', 'code_class'],
  });
  const conflicts = metrics.counter({
    name: 'weir_controller_api_conflicts_total',
    help: 'Writes that the API server refused (409) because the object had changed; they are decided again.',
  });
  const throttled = metrics.counter({
    name: 'weir_controller_api_throttled_total',
    help: 'Requests that the API server put off (429).',
  });
  return (verb, code) => {
    const codeClass = code === undefined ? 'none' : `${Math.floor(code / 100)}xx`;
    requests.add({ verb: verb.toLowerCase(), code_class: codeClass });
    if (code === 409) conflicts.add({});
    if (code === 429) throttled.add({});
  };
}

function watchMetrics(metrics: Metrics): WatchObserver {
  const restarts = metrics.counter({
    name: 'weir_controller_watch_restarts_total',
    help: 'Watches of one kind each that ended, or could not be opened, and are begun again: closed by the server or for their silence, gone since the history does not go back so far (410), error otherwise. Lists that fail are not counted.',
    labels: ['reason'],
  });
  for (const reason of ['closed', 'gone', 'error'] as const) restarts.add({ reason }, 0);
  const relists = metrics.counter({
    name: 'weir_controller_relists_total',
    help: 'Kinds that were read in full again after the first time.',
  });
  const stale = metrics.counter({
    name: 'weir_controller_stale_reads_total',
    help: 'Lists that were not used because they were older than what had been read before.',
  });
  return {
    ended: (reason) => restarts.add({ reason }),
    listed: (which) => relists.add({}, which === 'again' ? 1 : 0),
    stale: () => stale.add({}),
  };
}

function publishMetrics(
  metrics: Metrics,
  clock: Clock,
): Pick<ControllerMetrics, 'recordPublish' | 'recordPublishRetry'> {
  const publishes = metrics.counter({
    name: 'weir_controller_publishes_total',
    help: 'Routing tables that were decided: written (published), the same as in the store (empty), or refused because another controller claimed the lead (fenced).',
    labels: ['result'],
  });
  for (const result of ['published', 'empty', 'fenced'] as const) publishes.add({ result }, 0);
  const retries = metrics.counter({
    name: 'weir_controller_publish_retries_total',
    help: 'Attempts to decide and publish the routing table that failed and are tried again.',
  });
  const last = metrics.gauge({
    name: 'weir_controller_last_publish_timestamp_seconds',
    help: 'When this controller last wrote the routing table; 0: not since it started.',
  });
  return {
    recordPublish(outcome) {
      const result = PUBLISH_RESULTS[outcome];
      publishes.add({ result });
      if (result === 'published') last.set({}, clock.now() / 1000);
    },
    recordPublishRetry: () => retries.add({}),
  };
}

function loopMetrics(metrics: Metrics, clock: Clock): ControllerMetrics['measure'] {
  const durations = metrics.histogram({
    name: 'weir_controller_loop_duration_seconds',
    help: 'How long one turn of a loop took while leading: of the routing table, the fleet that is listened to, status, suspensions, ledger.',
    labels: ['loop'],
    buckets: DURATION_BUCKETS_SECONDS,
  });
  return async (loop, run) => {
    const startedAt = clock.monotonic();
    try {
      return await run();
    } finally {
      durations.observe({ loop }, (clock.monotonic() - startedAt) / 1000);
    }
  };
}

function leaderMetrics(metrics: Metrics): ControllerMetrics['trackLeadership'] {
  let leader: Pick<Leadership, 'isLeader'> | undefined;
  metrics.collectGauge({
    name: 'weir_controller_leader',
    help: '1 while this controller leads its fleet, else 0.',
    collect: () => [{ labels: {}, value: leader?.isLeader ? 1 : 0 }],
  });
  const changes = metrics.counter({
    name: 'weir_controller_leader_changes_total',
    help: 'How often this controller won or lost the lead.',
  });
  return (followed) => {
    leader = followed;
    // Won before anybody listened: that is a change, too.
    if (followed.isLeader) changes.add({});
    return followed.onChange(() => changes.add({}));
  };
}
