import { isInForce } from '@weir/model';
import { createLoop, type Loop } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import { ALWAYS_LEADER } from '../leader/leadership.ts';
import { LeadLost, storeInTheLead, untilLost } from '../leader/only-in-the-lead.ts';
import { LOOK_AGAIN_MS } from '../status/status-sink.ts';
import { UsageKeeper } from '../usage/usage-keeper.ts';
import type { Controller, ControllerOptions } from './controller.ts';
import { addControllerMetrics } from './controller-metrics.ts';
import { CutoffKeeper } from './cutoff-keeper.ts';
import { FleetKeeper } from './fleet-keeper.ts';
import { LeadTerm } from './lead-term.ts';
import { oneTimer } from './one-timer.ts';
import { SuspensionErrands } from './suspension-errands.ts';
import { type ReadSnapshot, TableKeeper, type TableOutcome } from './table-keeper.ts';
import { tellFailure } from './tell-failure.ts';
import { UnpublishedChange } from './unpublished-change.ts';
import { Validities } from './validities.ts';
import { wholeSnapshot } from './whole-snapshot.ts';

const LOOP = { gapMs: 5, resyncMs: 600_000, retryMs: [1_000, 30_000] } as const;
/** How often the proxies are listened to, and the store is asked whether it still holds what was written. */
const FLEET = { gapMs: 200, resyncMs: 1_000, retryMs: [1_000, 5_000] } as const;
const FLEET_WHILE_WAITING_MS = 250;
const TELL = { gapMs: 5, resyncMs: LOOK_AGAIN_MS, retryMs: [1_000, 5_000] } as const;
const ERRANDS = { gapMs: 5, resyncMs: 10_000, retryMs: [1_000, 30_000] } as const;
const ACCOUNT = { gapMs: 1_000, resyncMs: 15_000, retryMs: [1_000, 10_000] } as const;

/** Source to store, and back to the Services. One loop decides and publishes, the others run beside it; closing closes neither end. */
export function startController(options: ControllerOptions): Controller {
  const { source, store, log, clock, leader = ALWAYS_LEADER } = options;
  const metrics = options.metrics ?? addControllerMetrics(createMetrics(), clock);
  const writing = storeInTheLead(store, leader);
  const table = new TableKeeper({ store: writing.table, log: log.child({ part: 'table' }) });
  const errands = new SuspensionErrands({
    source,
    writer: options.suspensions,
    store: store.cutoffs,
    clock,
    log: log.child({ part: 'suspensions' }),
    onNews: () => decide.trigger(),
  });
  const cutoffs = new CutoffKeeper({
    source,
    store: writing.cutoffs,
    clock,
    log: log.child({ part: 'cutoffs' }),
    onEnd: () => decide.trigger(),
    onRequest: () => ask.trigger(),
    errands,
  });
  const fleet =
    options.status &&
    new FleetKeeper({
      heartbeats: store.heartbeats,
      sink: options.status,
      clock,
      log: log.child({ part: 'fleet' }),
      onNews: () => tell.trigger(),
    });
  const usage = new UsageKeeper({
    store: writing.usage,
    heartbeats: store.heartbeats,
    archive: options.archive,
    clock,
    log: log.child({ part: 'usage' }),
  });
  const validities = new Validities({ clock, onTurn: () => decide.trigger() });
  const readSnapshot = (): ReadSnapshot =>
    wholeSnapshot(source.snapshot(), { settings: options.settings, fleet, validities });
  let snapshot: ReadSnapshot | undefined;
  const unpublished = new UnpublishedChange();
  const term = new LeadTerm({
    leader,
    isClaimed: () => table.isLeading,
    claim: () => table.lead(),
    async read(signal) {
      await source.refresh?.(signal);
      await source.synced(signal);
    },
    listen: async (signal) => fleet?.listen(source.snapshot(), signal),
  });
  const follow = (): void => {
    term.end();
    unpublished.take();
    table.follow();
    errands.forget();
    usage.forget();
    fleet?.forget();
  };

  const tellUndecided = tellFailure(log, 'the routing table is not up to date; it is tried again');
  const decide: Loop = createLoop({
    ...LOOP,
    clock,
    onError(error, next) {
      metrics.publishRetried();
      tellUndecided(error, next);
      // Nobody has listened yet when the store is away from the start.
      listen.trigger();
    },
    async run(signal) {
      const outcome = await untilLost(() => decideInTheLead(signal));
      if (outcome === 'lead-lost') return follow();
      listen.trigger();
    },
  });
  const decideInTheLead = async (signal: AbortSignal): Promise<void> => {
    for (let attempt = 1; ; attempt += 1) {
      await term.begin(signal).catch(async (error: unknown) => {
        if (error instanceof LeadLost) throw error;
        // For who is to be told at least that.
        await source.synced(signal);
        snapshot = readSnapshot();
        throw error;
      });
      const outcome = await metrics.timed('table', decideAndPublish);
      if (outcome !== 'not-leader' && outcome !== 'wiped') return;
      await leader.recheck();
      if (leader.isLeader && attempt > 1) {
        throw new Error('another controller writes to the same fleet of the same store');
      }
      // Whoever it was may have decided of newer objects than ours.
      if (outcome === 'not-leader') follow();
    }
  };
  const decideAndPublish = async (): Promise<TableOutcome> => {
    snapshot = readSnapshot();
    const changedAt = unpublished.take();
    // Before the table, and whatever becomes of it: in a new store nothing may serve that is suspended, and whoever's objects no
    // table can be made of it must be possible to cut off.
    const cutOff = cutoffs.keep(snapshot).finally(() => ask.trigger());
    await cutOff.catch(() => undefined);
    const outcome = await publish(snapshot, changedAt);
    await cutOff;
    return outcome;
  };
  const publish = async (from: ReadSnapshot, changedAt: number | undefined): Promise<TableOutcome> => {
    const isFirst = table.translation === undefined;
    const outcome = await table.keep(from, changedAt).catch((error: unknown) => {
      unpublished.add(changedAt);
      throw error;
    });
    metrics.published(outcome);
    if (outcome === 'new-epoch' || (isFirst && outcome !== 'not-leader' && outcome !== 'wiped')) {
      fleet?.grace();
      account.trigger();
    }
    return outcome;
  };

  const listen: Loop = createLoop({
    ...FLEET,
    clock,
    onError: tellFailure(log, 'the proxies are not listened to; it is tried again'),
    async run() {
      const { translation } = table;
      if (!leader.isLeader || snapshot === undefined) return;
      if (translation === undefined) {
        if (store.connection !== 'ready') fleet?.keepUndecided(snapshot);
        return;
      }
      if (!(await isIntact(table, cutoffs))) {
        table.recheck();
        decide.trigger();
      }
      const inForce = cutoffs.present.filter((cutoff) => isInForce(cutoff, clock.now()));
      const decided = { table: translation.table, cutoffs: inForce, snapshot, exhausted: usage.exhausted };
      await metrics.timed('fleet', async () => fleet?.keep(decided));
      if (fleet !== undefined && fleet.absent !== snapshot?.absent) decide.trigger();
      if (fleet?.isSomebodyWaiting) soon.start();
    },
  });
  const tell: Loop = createLoop({
    ...TELL,
    clock,
    onError: tellFailure(log, 'Services are not told what became of them; it is tried again'),
    async run(signal) {
      if (leader.isLeader) await untilLost(() => metrics.timed('status', async () => fleet?.tell(signal)));
    },
  });
  const ask: Loop = createLoop({
    ...ERRANDS,
    clock,
    onError: () => undefined, // told already, each once
    async run(signal) {
      if (leader.isLeader) await untilLost(() => metrics.timed('suspensions', () => errands.run(signal)));
    },
  });
  const account: Loop = createLoop({
    ...ACCOUNT,
    clock,
    onError: tellFailure(log, 'the ledger is not looked after; it is tried again'),
    async run() {
      const { translation } = table;
      if (!leader.isLeader || translation === undefined) return;
      await untilLost(() => metrics.timed('ledger', () => usage.keep(translation.table)));
    },
  });
  const soon = oneTimer(clock, FLEET_WHILE_WAITING_MS, () => listen.trigger());

  const stops = [
    source.onChange((changedAt) => {
      unpublished.add(changedAt);
      decide.trigger();
    }),
    leader.onChange(() => {
      // At once: when it is won again before the loop has run, another may have led in between.
      if (!leader.isLeader) follow();
      decide.trigger();
    }),
    metrics.follow(leader),
    store.onConnection((state) => {
      if (state !== 'ready') return;
      fleet?.reconnected();
      table.recheck();
      decide.trigger();
      listen.trigger();
      account.trigger();
    }),
  ];
  decide.trigger();
  return {
    idle: () => decide.idle(),
    problems: () => table.translation?.problems ?? source.snapshot().problems,
    translation: () => table.translation,
    async close() {
      for (const stop of stops) stop();
      soon.cancel();
      cutoffs.close();
      validities.close();
      await Promise.all([decide.close(), listen.close(), tell.close(), ask.close(), account.close()]);
    },
  };
}

/** A store that was wiped, or fell back to an older copy, says so only when it is asked; one that is away, not at all. */
async function isIntact(table: TableKeeper, cutoffs: CutoffKeeper): Promise<boolean> {
  try {
    return (await table.isIntact()) && (await cutoffs.isIntact());
  } catch {
    return true;
  }
}
