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
import { type Bytes, type CutTime, SteadyClients, sum } from './steady-clients.ts';
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
const LOAD_AFTER_FAULT_MS = 8_000;
const LATER = 'later';

export async function runFault(fault: Fault, bench: FaultFleet): Promise<FaultResult> {
  await fault.prepare?.(bench);
  await bench.waitUntilReady(NODES);
  const before = await bench.ledger();
  const steady = new SteadyClients();
  const limits = new LimitClients();
  const suspensions = new SuspensionClients();
  const allStop = (): Promise<unknown> => Promise.all([steady.stop(), limits.stop(), suspensions.stop()]);
  try {
    await steady.waitForEach(20);
    await suspensions.waitUntilServed(NODES);
    const { effectMs, allowedLossBytes } = await injectAndHeal(fault, { bench, steady, limits, suspensions });
    await steady.waitForEach(20);
    await setTimeout(LOAD_AFTER_FAULT_MS);
    suspensions.expectServed();
    await resumeLater(bench);
    await suspensions.waitUntilServed(NODES);
    await allStop();
    const end = performance.now();
    const { ledger, differences } = await compareWithLedger(bench, { before, steady, mayDiffer: allowedLossBytes > 0 });
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
          longestTimeWithoutAdmission(limits.held, { from: limits.startedAt, to: end }),
          longestTimeWithoutAdmission(limits.rated, { from: limits.startedAt, to: end }),
        ),
      },
    };
  } finally {
    await allStop();
    await fault.restore?.(bench);
  }
}

interface Load {
  readonly bench: FaultFleet;
  readonly steady: SteadyClients;
  readonly limits: LimitClients;
  readonly suspensions: SuspensionClients;
}

async function injectAndHeal(
  fault: Fault,
  { bench, steady, limits, suspensions }: Load,
): Promise<{ effectMs: number | undefined; allowedLossBytes: number }> {
  const { kills, stops, seconds, suspend } = fault;
  const traffic = kills === undefined ? undefined : await RecentTraffic.sample(steady, kills);
  let cut: CutTime | undefined;
  if (kills !== undefined) {
    cut = steady.cut(kills);
    limits.cut(cut);
  }
  const healAt = performance.now() + seconds * 1_000;
  await fault.inject(bench);
  const allowedLossBytes = traffic?.bytesSince(performance.now() - MAX_UNFLUSHED_MS) ?? 0;
  traffic?.close();
  await steady.waitForEach(5, { except: kills ?? stops });
  const since = performance.now();
  if (suspend.with === 'weir') await bench.fleet.weir('suspend', LATER, '--message', 'Suspended during a fault.');
  else await suspendWithKubectl(bench);
  // A proxy that starts reads the Suspensions before it serves clients.
  if (kills !== undefined) suspensions.expectCutOff([kills]);
  const effectMs = await suspensions.waitUntilCutOff(suspend.reaches, { since });
  await setTimeout(Math.max(0, healAt - performance.now()));
  await fault.heal(bench);
  await bench.waitUntilReady(NODES);
  await suspensions.waitUntilCutOff(NODES, { since });
  if (cut !== undefined) cut.until = performance.now();
  return { effectMs: suspend.reaches.length === 0 ? undefined : effectMs, allowedLossBytes };
}

function suspendWithKubectl({ fleet }: FaultFleet): Promise<void> {
  const target = { type: 'Tenant', tenant: LATER };
  return fleet.cluster.apply(suspension('later', { target, message: 'Suspended during a fault.' }));
}

/** Deletes the Suspension of the tenant `later`. If it was made without the API server, the controller creates its object later. */
async function resumeLater({ fleet }: FaultFleet): Promise<void> {
  const names = await eventually(
    async () => {
      const found = (await fleet.cluster.kubectl('get', 'suspensions', '-o', 'name')).split('\n').filter(Boolean);
      const others = found.filter((name) => !name.endsWith('/stopped'));
      if (others.length === 0) throw new Error('the tenant "later" has no Suspension');
      return others;
    },
    { timeoutMs: 60_000, intervalMs: 250 },
  );
  await fleet.cluster.kubectl('delete', ...names);
}

/** The bytes that the clients of a node have exchanged in the last seconds. */
class RecentTraffic {
  readonly #steady: SteadyClients;
  readonly #node: NodeName;
  readonly #samples: { readonly at: number; readonly bytes: number }[] = [];
  readonly #timer: NodeJS.Timeout;

  static async sample(steady: SteadyClients, node: NodeName): Promise<RecentTraffic> {
    const traffic = new RecentTraffic(steady, node);
    await setTimeout(2 * MAX_UNFLUSHED_MS);
    return traffic;
  }

  private constructor(steady: SteadyClients, node: NodeName) {
    this.#steady = steady;
    this.#node = node;
    this.#timer = setInterval(() => this.#take(), SAMPLE_MS);
    this.#take();
  }

  bytesSince(time: number): number {
    const earlier = this.#samples.findLast(({ at }) => at <= time) ?? this.#samples[0];
    return this.#steady.bytesAt(this.#node) - (earlier?.bytes ?? 0);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #take(): void {
    this.#samples.push({ at: performance.now(), bytes: this.#steady.bytesAt(this.#node) });
  }
}

/**
 * Waits until the ledger equals the clients' counts. If the counts still differ after a minute, or if they may differ after 10 s, returns
 * the differences.
 */
async function compareWithLedger(
  bench: FaultFleet,
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
    const now = await bench.ledger();
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
    ...(limits.maxPerTenSeconds <= 10.5 * RATE_LIMIT
      ? []
      : [`${limits.maxPerTenSeconds} connections were admitted in 10 s, but the limit is ${RATE_LIMIT} per second`]),
    ...(limits.longestWithoutAdmissionMs <= MAX_WITHOUT_ADMISSION_MS
      ? []
      : [`no connection was admitted for ${limits.longestWithoutAdmissionMs.toFixed(0)} ms`]),
  ];
}

/** A tenant whose limit became zero would admit nothing until the end of the fault. */
const MAX_WITHOUT_ADMISSION_MS = 10_000;
