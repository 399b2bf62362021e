import {
  entriesOf,
  type FleetSettings,
  initialRuleState,
  isInForce,
  isRecordOf,
  nextRateWindow,
  type RateWindow,
  type RoutingTable,
  type Rule,
  type RuleEvent,
  type RuleRecord,
  type RuleState,
  rateIn,
  stepRule,
  type Tenant,
  tenancyFor,
} from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Store, SuspensionState, SuspensionStore } from '@weir/store';
import {
  createLeaderLoop,
  type LoopContext,
  logLoopFailure,
  type ReconcileLoop,
} from '../controller/reconcile-loop.ts';
import type { Source } from '../watch/source.ts';
import type { RuleNotice, RuleReporter } from './rule-events.ts';
import { suspensionFor, suspensionNameFor } from './rule-suspension.ts';
import { readTenants, type TenantReading } from './tenant-readings.ts';

/** Samples the rates every 5 s, so that a rate is a mean over 15 s (see `nextRateWindow`), and a changed rule takes effect soon. */
const RULE_LOOP = { gapMs: 1_000, resyncMs: 5_000, retryMs: [1_000, 5_000] } as const;

export function createRuleLoop(
  context: LoopContext,
  { rules, table }: { readonly rules: RuleReconciler; readonly table: () => RoutingTable | undefined },
): ReconcileLoop {
  const { metrics, log, wake } = context;
  const loop = createLeaderLoop(context, RULE_LOOP, {
    async run(signal) {
      const current = table();
      if (current === undefined) return;
      if ((await metrics.measure('rules', () => rules.reconcile(current, signal))) === 'changed') wake('table');
    },
    onError: logLoopFailure(log, 'failed to evaluate the rules of TenantPolicies; retrying'),
  });
  return { loop, onLeadershipLost: () => rules.reset() };
}

export interface RuleReconcilerOptions {
  readonly source: Pick<Source, 'snapshot'>;
  readonly settings: FleetSettings;
  readonly store: Pick<Store, 'usage' | 'heartbeats'> & { readonly suspensions: Pick<SuspensionStore, 'read' | 'put'> };
  /** Shows users what rules do. By default only the log shows it. */
  readonly reporter: RuleReporter | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the last table in the store, from which a new term continues; undefined while this controller has not read it. */
  readonly publishedTable: () => RoutingTable | undefined;
}

/** The records of each tenant, by name of the tenant. */
type RuleRecords = ReadonlyMap<string, readonly RuleRecord[]>;

interface TenantRules {
  readonly window: RateWindow | undefined;
  /** The rules of the last round and their states, by name of the rule. */
  readonly states: ReadonlyMap<string, RuleWithState>;
}

interface RuleWithState {
  readonly rule: Rule;
  readonly state: RuleState;
}

/** If a Suspension is missing in so many rounds in a row, a user has ended it. In fewer rounds, a failover may have lost it. */
const MAX_MISSING_ROUNDS = 2;

/** Evaluates the rules of all tenants, suspends tenants, and provides the records with which the table throttles tenants. */
export class RuleReconciler {
  readonly #options: RuleReconcilerOptions;
  /** Undefined until the records of the published table are read. */
  #records: RuleRecords | undefined;
  #tenants: ReadonlyMap<string, TenantRules> = new Map();
  /** In how many rounds in a row the Suspension of an acting rule was missing, by name of the Suspension. */
  #missingRounds: ReadonlyMap<string, number> = new Map();

  constructor(options: RuleReconcilerOptions) {
    this.#options = options;
  }

  /** The records of all tenants. Returns the same map until an action begins or ends. */
  get records(): RuleRecords {
    const table = this.#records === undefined ? this.#options.publishedTable() : undefined;
    if (table !== undefined) this.#records = recordsIn(table);
    return this.#records ?? NO_RECORDS;
  }

  /** Call this when leadership is lost. The next term continues with the records of the published table. */
  reset(): void {
    this.#records = undefined;
    this.#tenants = new Map();
    this.#missingRounds = new Map();
  }

  /** Evaluates all rules once. Rejects if the store is unreachable; then nothing has changed. */
  async reconcile(table: RoutingTable, signal: AbortSignal): Promise<'changed' | 'unchanged'> {
    const { source, settings, store } = this.#options;
    const snapshot = source.snapshot();
    // Without policies and namespaces, it is unknown which rules apply to a tenant.
    if (snapshot.unreadableKinds?.has('TenantPolicy') || snapshot.unreadableKinds?.has('Namespace')) return 'unchanged';
    const before = this.records;
    const hasRules = [settings.defaultPolicy, ...snapshot.policies.map(({ spec }) => spec)].some(({ rules }) => rules);
    if (!hasRules && before.size === 0) return 'unchanged';
    const { tenants: all } = tenancyFor({ ...snapshot, settings });
    const tenants = [...all.values()].filter(({ rules }) => rules !== undefined);
    const readings = await readTenants(tenants, { table, store, clock: this.#options.clock, signal });
    const suspensions = await store.suspensions.read();
    if (this.#records !== before) return 'unchanged';
    const round = this.#evaluate(tenants, readings, suspensions);
    for (const { event, tenant } of round.notices)
      if (event.kind === 'begin' && event.record.action === 'Suspend')
        await store.suspensions.put(suspensionFor(event.record, tenant));
    if (this.#records !== before) return 'unchanged';
    this.#tenants = round.tenants;
    this.#missingRounds = round.missingRounds;
    this.#log(round.notices);
    this.#options.reporter?.report(round.notices, snapshot);
    if (!round.isChanged && hasSameTenants(before, round.records)) return 'unchanged';
    this.#records = round.records;
    return 'changed';
  }

  #evaluate(
    tenants: readonly Tenant[],
    readings: ReadonlyMap<string, TenantReading>,
    suspensions: SuspensionState,
  ): RuleRound {
    const { clock } = this.#options;
    const [at, now] = [clock.monotonic(), clock.now()];
    const inForce = new Set(suspensions.suspensions.filter((each) => isInForce(each, now)).map(({ name }) => name));
    const round: RuleRound = {
      tenants: new Map(),
      records: new Map(),
      notices: [],
      missingRounds: new Map(),
      isChanged: false,
    };
    for (const tenant of tenants) {
      const before = this.#tenants.get(tenant.name);
      const reading = readings.get(tenant.name);
      const window = nextRateWindow(before?.window, reading?.ledger);
      const events: RuleEvent[] = [];
      const states = new Map<string, RuleWithState>();
      for (const rule of tenant.rules ?? []) {
        const state = this.#stateOf(tenant, rule, before);
        const value = rule.metric === 'trafficPerMonth' ? reading?.trafficThisMonth : rateIn(window, rule.metric);
        const suspension = suspensionNameFor(tenant.name, rule.name);
        const isSuspended =
          inForce.has(suspension) ||
          (state.record?.phase === 'acting' && !this.#isMissing(suspension, { suspensions, round }));
        const step = stepRule(rule, state, { at, now, value, isSuspended });
        if (step.event) events.push(step.event);
        if (step.state.record !== state.record) round.isChanged = true;
        states.set(rule.name, { rule, state: step.state });
      }
      // The rates during the Suspension say nothing about the rates without the Suspension.
      const isReleased = events.some(({ kind }) => kind === 'released');
      round.tenants.set(tenant.name, { window: isReleased ? undefined : window, states });
      round.notices.push(...events.map((event) => ({ event, tenant })));
      const records = [...states.values()].flatMap(({ state }) => state.record ?? []);
      if (records.length > 0) round.records.set(tenant.name, records);
    }
    return round;
  }

  #stateOf({ name }: Tenant, rule: Rule, before: TenantRules | undefined): RuleState {
    const known = before?.states.get(rule.name);
    const record =
      known === undefined ? this.records.get(name)?.find((each) => each.rule === rule.name) : known.state.record;
    // A rule that acts differently now begins anew, which ends its throttle.
    if (record !== undefined && !isRecordOf(record, rule)) return initialRuleState();
    // Samples above the old threshold say nothing about the new one.
    if (record === undefined && known !== undefined && !hasSameCondition(known.rule, rule)) return initialRuleState();
    return known?.state ?? initialRuleState(record);
  }

  /** Reports whether the Suspension of an acting rule has been missing for `MAX_MISSING_ROUNDS`, including this round. */
  #isMissing(
    name: string,
    { suspensions, round }: { readonly suspensions: SuspensionState; readonly round: RuleRound },
  ): boolean {
    const missing = suspensions.completeSince === null ? 0 : (this.#missingRounds.get(name) ?? 0) + 1;
    round.missingRounds.set(name, missing);
    return missing >= MAX_MISSING_ROUNDS;
  }

  #log(notices: readonly RuleNotice[]): void {
    for (const { event, tenant } of notices) {
      const { rule, action, metric, value, above, until } = event.record;
      const fields = { policy: tenant.policy, tenant: tenant.name, rule, action, metric, value, above, until };
      this.#options.log.warn({ ...fields, event: event.kind }, 'the action of a rule of a TenantPolicy began or ended');
    }
  }
}

const NO_RECORDS: RuleRecords = new Map();

interface RuleRound {
  readonly tenants: Map<string, TenantRules>;
  readonly records: Map<string, readonly RuleRecord[]>;
  readonly notices: RuleNotice[];
  readonly missingRounds: Map<string, number>;
  isChanged: boolean;
}

/** Returns the records in a table, by tenant. */
function recordsIn(table: RoutingTable): RuleRecords {
  return new Map(entriesOf(table, 'tenant').flatMap(({ name, rules }) => (rules === undefined ? [] : [[name, rules]])));
}

function hasSameCondition(a: Rule, b: Rule): boolean {
  return a.metric === b.metric && a.above === b.above;
}

function hasSameTenants(a: RuleRecords, b: RuleRecords): boolean {
  return a.size === b.size && [...a].every(([name, records]) => records.length === b.get(name)?.length);
}
