// Runs one fault under load, and compares what the clients have seen with what the fleet has recorded and promised.
import { setTimeout } from 'node:timers/promises';
import { eventually } from '@weir/testkit';
import { NODES, type NodeName } from '../addresses.ts';
import { suspension } from '../manifests.ts';
import type { Protocol } from './client-connections.ts';
import { type FaultFleet, PROTOCOLS } from './fault-fleet.ts';
import type { Fault } from './faults.ts';
import {
  CONNECTION_LIMIT,
  LimitClients,
  longestTimeWithoutAdmission,
  maxAdmittedWithin,
  maxOpenConnections,
  RATE_LIMIT,
} from './limit-clients.ts';
import { type Bytes, SteadyClients, sum } from './steady-clients.ts';
import { SuspensionClients } from './suspension-clients.ts';

/** The result of one fault. */
export interface FaultResult {
  readonly fault: string;
  readonly operations: number;
  readonly cutOperations: number;
  readonly failures: readonly string[];
  /** Bytes in both directions that the fault's clients have exchanged, and that the ledger has counted. */
  readonly wireBytes: number;
  readonly ledgerBytes: number;
  /** Ledger minus wire by Service and direction, where they differ. */
  readonly differences: readonly string[];
  /** The bytes that may be missing: what a killed proxy has relayed since its last flush. */
  readonly allowedLossBytes: number;
  readonly suspension: {
    readonly attempts: number;
    readonly breaches: readonly string[];
    /** Milliseconds from the start of the command to the last echo on all nodes that the Suspension reaches during the fault. */
    readonly effectMs: number | undefined;
  };
  readonly limits: {
    readonly maxOpen: number;
    readonly maxPerSecond: number;
    readonly maxPerTenSeconds: number;
    readonly longestWithoutAdmissionMs: number;
  };
}

/** A proxy flushes its usage every second. A flush that has begun when the proxy is killed may not have ended. */
const MAX_UNFLUSHED_MS = 1_500;
const SAMPLE_MS = 100;
/** The load continues for this time after the fault, so that limits that are too high after the fault are noticed. */
const DEFAULT_LOAD_AFTER_FAULT_MS = 8_000;
const LATER = 'later';

export async function runFault(
  fault: Fault,
  faultFleet: FaultFleet,
  { loadAfterFaultMs = DEFAULT_LOAD_AFTER_FAULT_MS }: { readonly loadAfterFaultMs?: number } = {},
): Promise<FaultResult> {
  await fault.prepare?.(faultFleet);
  await faultFleet.waitUntilReady(NODES);
  const before = await faultFleet.ledger();
  const steady = new SteadyClients();
  const limits = new LimitClients();
  const suspensions = new SuspensionClients();
  const allStop = (): Promise<unknown> => Promise.all([steady.stop(), limits.stop(), suspensions.stop()]);
  try {
    await steady.waitForEach(20);
    await suspensions.waitUntilServed(NODES);
    const { effectMs, allowedLossBytes, limitsHoldFrom } = await injectAndHeal(fault, {
      faultFleet,
      steady,
      limits,
      suspensions,
    });
    await steady.waitForEach(20);
    await setTimeout(loadAfterFaultMs);
    suspensions.expectServed();
    await resumeLater(faultFleet);
    await suspensions.waitUntilServed(NODES);
    await allStop();
    const end = performance.now();
    const { ledger, differences } = await compareWithLedger(faultFleet, {
      before,
      steady,
      mayDiffer: allowedLossBytes > 0,
    });
    const wire = sum(PROTOCOLS.map((protocol) => steady.bytesOf(protocol)));
    return {
      fault: fault.name,
      operations: steady.operations,
      cutOperations: steady.cutOperations,
      failures: steady.failures,
      wireBytes: wire.sent + wire.received,
      ledgerBytes: ledger.sent + ledger.received,
      differences,
      allowedLossBytes,
      suspension: { attempts: suspensions.attempts, breaches: suspensions.breaches, effectMs },
      limits: {
        maxOpen: maxOpenConnections(limits.held),
        maxPerSecond: maxAdmittedWithin(limits.rated, 1_000),
        maxPerTenSeconds: maxAdmittedWithin(limits.rated, 10_000),
        longestWithoutAdmissionMs: Math.max(
          longestTimeWithoutAdmission(limits.held, { from: limitsHoldFrom, to: end }),
          longestTimeWithoutAdmission(limits.rated, { from: limitsHoldFrom, to: end }),
        ),
      },
    };
  } catch (thrown) {
    // Otherwise all further faults would fail too.
    for (const name of await suspensionsOfLater(faultFleet)) await faultFleet.fleet.cluster.kubectl('delete', name);
    throw thrown;
  } finally {
    await allStop();
    await fault.restore?.(faultFleet);
  }
}

interface Load {
  readonly faultFleet: FaultFleet;
  readonly steady: SteadyClients;
  readonly limits: LimitClients;
  readonly suspensions: SuspensionClients;
}

async function injectAndHeal(
  fault: Fault,
  { faultFleet, steady, limits, suspensions }: Load,
): Promise<{ effectMs: number | undefined; allowedLossBytes: number; limitsHoldFrom: number }> {
  const { kills, stops, seconds, suspend } = fault;
  const killed = kills?.nodes ?? [];
  const traffic = await RecentTraffic.sample(steady, killed);
  const cuts = killed.map((node) => steady.cut(node));
  const endCuts = (): Promise<unknown> => Promise.all(cuts.map((cut) => steady.endCut(cut)));
  const healAt = performance.now() + seconds * 1_000;
  await fault.inject(faultFleet);
  traffic.close();
  const isRestarted = kills?.restartedBy === 'inject';
  if (isRestarted) await endCuts();
  await steady.waitForEach(5, { except: isRestarted ? [] : [...killed, ...(stops === undefined ? [] : [stops])] });
  const since = performance.now();
  if (suspend.with === 'weir') await faultFleet.fleet.weir('suspend', LATER, '--message', 'Suspended during a fault.');
  else await suspendWithKubectl(faultFleet, suspend.endsAfterMinutes);
  // A proxy that starts reads the Suspensions before it serves clients.
  if (!isRestarted) suspensions.expectCutOff(killed);
  const effectMs = await suspensions.waitUntilCutOff(suspend.reaches, { since });
  await setTimeout(Math.max(0, healAt - performance.now()));
  await fault.heal(faultFleet);
  await faultFleet.waitUntilReady(NODES);
  await suspensions.waitUntilCutOff(NODES, { since });
  if (!isRestarted) await endCuts();
  for (const cut of cuts) limits.cut(cut);
  return {
    effectMs: suspend.reaches.length === 0 ? undefined : effectMs,
    allowedLossBytes: traffic.maxBytesWithin(MAX_UNFLUSHED_MS),
    // While no proxy runs, nothing can be admitted.
    limitsHoldFrom: killed.length === NODES.length ? Math.max(...cuts.map(({ until }) => until)) : limits.startedAt,
  };
}

function suspendWithKubectl({ fleet }: FaultFleet, endsAfterMinutes: number | undefined): Promise<void> {
  const spec = {
    target: { type: 'Tenant', tenant: LATER },
    message: 'Suspended during a fault.',
    ...(endsAfterMinutes !== undefined && { until: new Date(Date.now() + endsAfterMinutes * 60_000).toISOString() }),
  };
  return fleet.cluster.apply(suspension(LATER, spec));
}

/** Deletes the Suspension of the tenant `later`. If it was made without the API server, the controller creates its object later. */
async function resumeLater(faultFleet: FaultFleet): Promise<void> {
  const names = await eventually(
    async () => {
      const found = await suspensionsOfLater(faultFleet);
      if (found.length === 0) throw new Error('the tenant "later" has no Suspension');
      return found;
    },
    { timeoutMs: 60_000, intervalMs: 250 },
  );
  await faultFleet.fleet.cluster.kubectl('delete', ...names);
}

/** Returns the names of all Suspensions but the one that stays for the whole suite, as kubectl prints them. */
async function suspensionsOfLater({ fleet }: FaultFleet): Promise<string[]> {
  const names = (await fleet.cluster.kubectl('get', 'suspensions', '-o', 'name')).split('\n').filter(Boolean);
  return names.filter((name) => !name.endsWith('/stopped'));
}

/** Samples how many bytes the clients of some nodes have exchanged. */
class RecentTraffic {
  readonly #steady: SteadyClients;
  readonly #nodes: readonly NodeName[];
  readonly #samples: { readonly at: number; readonly bytes: number }[] = [];
  readonly #timer: NodeJS.Timeout;

  static async sample(steady: SteadyClients, nodes: readonly NodeName[]): Promise<RecentTraffic> {
    const traffic = new RecentTraffic(steady, nodes);
    await setTimeout(nodes.length === 0 ? 0 : 2 * MAX_UNFLUSHED_MS);
    return traffic;
  }

  private constructor(steady: SteadyClients, nodes: readonly NodeName[]) {
    this.#steady = steady;
    this.#nodes = nodes;
    this.#timer = setInterval(() => this.#take(), SAMPLE_MS);
    this.#take();
  }

  /** Returns the maximum number of bytes in a window of this length. */
  maxBytesWithin(windowMs: number): number {
    return this.#samples.reduce((max, { at, bytes }) => {
      const last = this.#samples.findLast((sample) => sample.at <= at + windowMs);
      return Math.max(max, (last?.bytes ?? bytes) - bytes);
    }, 0);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#take();
  }

  #take(): void {
    const bytes = this.#nodes.reduce((total, node) => total + this.#steady.bytesAt(node), 0);
    this.#samples.push({ at: performance.now(), bytes });
  }
}

/**
 * Waits until the ledger equals the clients' counts. If the counts still differ after a minute, or if they may differ after 10 s, returns
 * the differences.
 */
async function compareWithLedger(
  faultFleet: FaultFleet,
  {
    before,
    steady,
    mayDiffer,
  }: {
    readonly before: Readonly<Record<Protocol, Bytes>>;
    readonly steady: SteadyClients;
    readonly mayDiffer: boolean;
  },
): Promise<{ ledger: Bytes; differences: readonly string[] }> {
  let ledger: Bytes = { sent: 0, received: 0 };
  let differences: readonly string[] = [];
  const compare = async (): Promise<void> => {
    const now = await faultFleet.ledger();
    const counted = PROTOCOLS.map((protocol) => ({
      sent: now[protocol].sent - before[protocol].sent,
      received: now[protocol].received - before[protocol].received,
    }));
    ledger = sum(counted);
    differences = PROTOCOLS.flatMap((protocol, index) =>
      (['sent', 'received'] as const).flatMap((direction) => {
        const wire = steady.bytesOf(protocol)[direction];
        const difference = (counted[index]?.[direction] ?? 0) - wire;
        return difference === 0 ? [] : [`${protocol} ${direction} by clients: ${difference} of ${wire}`];
      }),
    );
    if (differences.length > 0) throw new Error(differences.join('; '));
  };
  await eventually(compare, { timeoutMs: mayDiffer ? 10_000 : 60_000, intervalMs: 250 }).catch(() => undefined);
  return { ledger, differences };
}

/** Returns what is wrong with a result. */
export function findingsFor({ failures, suspension, limits, ...result }: FaultResult): string[] {
  const lossBytes = result.wireBytes - result.ledgerBytes;
  return [
    ...(failures.length === 0 ? [] : [`${failures.length} operations failed: ${failures.slice(0, 5).join('; ')}`]),
    ...(lossBytes <= result.allowedLossBytes && (result.differences.length === 0 || result.allowedLossBytes > 0)
      ? []
      : [`the ledger differs from the clients: ${result.differences.join('; ')}`]),
    ...(lossBytes < 0 ? [`the ledger has ${-lossBytes} bytes more than the clients`] : []),
    ...suspension.breaches.slice(0, 5),
    ...(limits.maxOpen <= CONNECTION_LIMIT ? [] : [`${limits.maxOpen} of ${CONNECTION_LIMIT} connections were open`]),
    ...(limits.maxPerSecond <= 1.1 * RATE_LIMIT
      ? []
      : [`${limits.maxPerSecond} connections were admitted in a second, but the limit is ${RATE_LIMIT}`]),
    ...(limits.maxPerTenSeconds <= MAX_PER_TEN_SECONDS
      ? []
      : [`${limits.maxPerTenSeconds} connections were admitted in 10 s, but the limit is ${RATE_LIMIT} per second`]),
    ...(limits.longestWithoutAdmissionMs <= MAX_WITHOUT_ADMISSION_MS
      ? []
      : [`no connection was admitted for ${limits.longestWithoutAdmissionMs.toFixed(0)} ms`]),
  ];
}

/**
 * In 10 s after a pause, the proxies admit up to 103.5 % of a limit. A fault delays the reports from which each proxy knows what the other
 * proxies leave, so the proxies may admit more, but never more than 110 % in a second.
 */
const MAX_PER_TEN_SECONDS = 10.75 * RATE_LIMIT;
/** A tenant whose limit became zero would admit nothing until the end of the fault. */
const MAX_WITHOUT_ADMISSION_MS = 10_000;
