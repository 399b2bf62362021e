// The Prometheus metrics of a controller. The number of series is bounded: no label contains a path or the name of an object, except the
// names of tenants and rules, and each registry limits the number of series of a metric.
import {
  entriesOf,
  type RoutingTable,
  type RuleRecord,
  type TenantEntry,
  type TranslatorOutput,
  type UsageRow,
} from '@weir/model';
import type { Clock, Metrics, Sample } from '@weir/runtime';
import type { ResponseObserver } from '../kubernetes/kube-api.ts';
import type { Leadership } from '../leader/leadership.ts';
import type { TableOutcome } from '../table/table-reconciler.ts';
import type { WatchObserver } from '../watch/kubernetes/reflector.ts';

export type LoopName = 'table' | 'fleet' | 'status' | 'suspensions' | 'ledger' | 'rules';

export interface ControllerMetrics {
  readonly api: ResponseObserver;
  readonly watch: WatchObserver;
  recordPublish(outcome: TableOutcome): void;
  recordPublishRetry(): void;
  /** Runs `run` and records how long the run took, even if the run fails. */
  measure<T>(loop: LoopName, run: () => Promise<T>): Promise<T>;
  /** Sets the limits and the use of all tenants. `rows` is the usage of this month of the tenants with a limit `trafficPerMonth`. */
  setTenants(table: RoutingTable, rows: readonly UsageRow[]): void;
  /** Exports which rules act. `current` returns what rules do to each tenant, by name of the tenant. */
  trackRules(current: () => ReadonlyMap<string, readonly RuleRecord[]>): void;
  /** Exports the numbers of problems and of nodes in the translation that `current` returns. */
  trackTranslation(current: () => TranslatorOutput | undefined): void;
  /** Counts changes of leadership. Returns a function that stops the counting. */
  trackLeadership(leader: Pick<Leadership, 'isLeader' | 'onChange'>): () => void;
}

/**
 * The value of the label `result` for each outcome of a publication. `empty`: the store already holds this table. `fenced`: the store
 * refused the table because another controller leads.
 */
const PUBLISH_RESULTS: { readonly [O in TableOutcome]: 'published' | 'empty' | 'fenced' } = {
  published: 'published',
  'new-epoch': 'published',
  unchanged: 'empty',
  'not-leader': 'fenced',
  wiped: 'fenced',
};
const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60];

/** Registers the metrics. Call this function once per registry. */
export function addControllerMetrics(metrics: Metrics, clock: Clock): ControllerMetrics {
  const { trackLeadership, isLeader } = leaderMetrics(metrics);
  return {
    api: apiMetrics(metrics),
    watch: watchMetrics(metrics),
    ...publishMetrics(metrics, clock),
    measure: loopMetrics(metrics, clock),
    trackLeadership,
    setTenants: tenantMetrics(metrics, isLeader),
    trackRules: ruleMetrics(metrics, isLeader),
    trackTranslation: translationMetrics(metrics, isLeader),
  };
}

function apiMetrics(metrics: Metrics): ResponseObserver {
  const requests = metrics.counter({
    name: 'weir_controller_api_requests_total',
    help: 'Requests to the API server by method (watch: the request that opens a watch) and class of the response; none: no response.',
    labels: ['verb', 'code_class'],
  });
  const conflicts = metrics.counter({
    name: 'weir_controller_api_conflicts_total',
    help: 'Writes that the API server refused (409) because the object had changed. The controller reads the object and writes again.',
  });
  const throttled = metrics.counter({
    name: 'weir_controller_api_throttled_total',
    help: 'Requests that the API server throttled (429).',
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
    help: 'Watches (one for each kind) that ended or failed to open; the controller opens them again. closed: the server closed the watch, or the watch was idle for too long; gone: the version to watch from was too old (410); error: any other reason. Failed lists are not counted.',
    labels: ['reason'],
  });
  for (const reason of ['closed', 'gone', 'error'] as const) restarts.add({ reason }, 0);
  const relists = metrics.counter({
    name: 'weir_controller_relists_total',
    help: 'Full reads of a kind after the first full read.',
  });
  const stale = metrics.counter({
    name: 'weir_controller_stale_reads_total',
    help: 'Lists that were discarded because they were older than what the controller had read before.',
  });
  return {
    watchEnded: (reason) => restarts.add({ reason }),
    listCompleted: (which) => relists.add({}, which === 'again' ? 1 : 0),
    staleListRefused: () => stale.add({}),
  };
}

function publishMetrics(
  metrics: Metrics,
  clock: Clock,
): Pick<ControllerMetrics, 'recordPublish' | 'recordPublishRetry'> {
  const publishes = metrics.counter({
    name: 'weir_controller_publishes_total',
    help: 'Translated routing tables: written (published), the same as in the store (empty), or refused because another controller leads (fenced).',
    labels: ['result'],
  });
  for (const result of ['published', 'empty', 'fenced'] as const) publishes.add({ result }, 0);
  const retries = metrics.counter({
    name: 'weir_controller_publish_retries_total',
    help: 'Failed attempts to translate and publish the routing table; each is retried.',
  });
  const last = metrics.gauge({
    name: 'weir_controller_last_publish_timestamp_seconds',
    help: 'When this controller last wrote the routing table; 0 if it has not written since it started.',
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
    help: 'Duration of one run of a loop while this controller leads. table: translate and publish; fleet: read heartbeats; status: write status; suspensions: write Suspensions; ledger: usage; rules: evaluate the rules of TenantPolicies.',
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

function translationMetrics(metrics: Metrics, isLeader: () => boolean): ControllerMetrics['trackTranslation'] {
  let current: () => TranslatorOutput | undefined = () => undefined;
  const output = (): TranslatorOutput | undefined => (isLeader() ? current() : undefined);
  metrics.collectGauge({
    name: 'weir_controller_nodes',
    help: 'Nodes that should run a proxy of this fleet, while this controller leads.',
    collect() {
      const { table } = output() ?? {};
      return table === undefined ? [] : [{ labels: {}, value: entriesOf(table, 'node').length }];
    },
  });
  metrics.collectGauge({
    name: 'weir_controller_problems',
    help: 'Problems of Services and other objects by code, while this controller leads.',
    labels: ['code'],
    collect: () =>
      [...Map.groupBy(output()?.problems ?? [], ({ code }) => code)].map(([code, { length: value }]) => ({
        labels: { code },
        value,
      })),
  });
  return (track) => {
    current = track;
  };
}

type TenantSample = Sample<'tenant' | 'resource'>;

/** Only the leader exports these metrics, because only the leader reads the ledger. */
function tenantMetrics(metrics: Metrics, isLeader: () => boolean): ControllerMetrics['setTenants'] {
  const labels = ['tenant', 'resource'] as const;
  let limits: readonly TenantSample[] = [];
  let used: readonly TenantSample[] = [];
  metrics.collectGauge({
    name: 'weir_tenant_limit',
    help: 'Limit of a tenant by resource, while this controller leads; a resource without a series is unlimited.',
    labels,
    collect: () => (isLeader() ? limits : []),
  });
  metrics.collectGauge({
    name: 'weir_tenant_used',
    help: 'Use of a tenant by resource, while this controller leads; trafficPerMonth is the number of bytes of this month, only for tenants with this limit.',
    labels,
    collect: () => (isLeader() ? used : []),
  });
  return (table, rows) => {
    const tenants = entriesOf(table, 'tenant');
    const traffic = new Map<string, number>();
    for (const { tenant, counters } of rows)
      traffic.set(tenant, (traffic.get(tenant) ?? 0) + counters.receivedBytes + counters.sentBytes);
    limits = tenants.flatMap(({ name, limits: own }) => samplesOf(name, own));
    used = tenants.flatMap((tenant) => samplesOf(tenant.name, usedBy(tenant, traffic)));
  };
}

function ruleMetrics(metrics: Metrics, isLeader: () => boolean): ControllerMetrics['trackRules'] {
  let current: () => ReadonlyMap<string, readonly RuleRecord[]> = () => new Map();
  metrics.collectGauge({
    name: 'weir_rule_acting',
    help: '1 for each rule of a TenantPolicy that acts on a tenant now, while this controller leads.',
    labels: ['tenant', 'rule', 'action'],
    collect: () =>
      [...(isLeader() ? current() : [])].flatMap(([tenant, records]) =>
        records
          .filter(({ phase }) => phase === 'acting')
          .map(({ rule, action }) => ({ labels: { tenant, rule, action }, value: 1 })),
      ),
  });
  return (records) => {
    current = records;
  };
}

function usedBy({ name, limits, used }: TenantEntry, traffic: ReadonlyMap<string, number>): object {
  return { ...used, ...(limits.trafficPerMonth !== undefined && { trafficPerMonth: traffic.get(name) ?? 0 }) };
}

function samplesOf(tenant: string, amounts: object): TenantSample[] {
  return Object.entries(amounts).map(([resource, value]) => ({ labels: { tenant, resource }, value: Number(value) }));
}

function leaderMetrics(metrics: Metrics): Pick<ControllerMetrics, 'trackLeadership'> & { isLeader(): boolean } {
  let leader: Pick<Leadership, 'isLeader'> | undefined;
  metrics.collectGauge({
    name: 'weir_controller_leader',
    help: '1 while this controller leads its fleet, otherwise 0.',
    collect: () => [{ labels: {}, value: leader?.isLeader ? 1 : 0 }],
  });
  const changes = metrics.counter({
    name: 'weir_controller_leader_changes_total',
    help: 'How often this controller has gained or lost leadership.',
  });
  return {
    isLeader: () => leader?.isLeader === true,
    trackLeadership(tracked) {
      leader = tracked;
      // Counts a leadership that began before this call.
      if (tracked.isLeader) changes.add({});
      return tracked.onChange(() => changes.add({}));
    },
  };
}
