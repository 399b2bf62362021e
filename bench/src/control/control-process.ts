// A process of its own: `control-process.ts REDIS-URL FLEET SERVICES`. A controller on a source that it is told to edit.
import { type Controller, startController } from '@weir/controller';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore, type Store } from '@weir/store';
import { answer } from './calls.ts';
import { clusterOf, clusterSettings } from './cluster.ts';
import { EditedSource } from './edited-source.ts';
import { editsFor } from './edits.ts';
import { peakKiB, residentNowKiB } from './own-memory.ts';
import { sameTime } from './same-time.ts';
import type { ChangeScenario } from './scenario-name.ts';
import { digestOf } from './table-digest.ts';
import { watchWire } from './wire.ts';

export type Started = {
  /** From nothing but the objects in memory to all of them published. */
  readonly ms: number;
  readonly revision: number;
  readonly entries: number;
  readonly bytes: number;
  /** Before the start: the program, and the objects in the source. */
  readonly objectsKiB: number;
  readonly residentKiB: number;
  readonly peakKiB: number;
};

/** One change: when the source had it, and which revision of the table holds it. */
export type Changed = { readonly at: number; readonly revision: number; readonly bytes: number };

export type ControlCalls = {
  start(): Promise<Started>;
  change(scenario: ChangeScenario, round: number): Promise<readonly Changed[]>;
  digest(): string;
  residentKiB(): number;
};

const [url = '', fleet = '', services = '0'] = process.argv.slice(2);
const wire = watchWire();
const source = new EditedSource(clusterOf(Number(services)));
const log = silentLogger();
let store: Store | undefined;
let controller: Controller | undefined;

answer<ControlCalls>({
  async start() {
    const objectsKiB = residentNowKiB();
    const began = sameTime();
    store = await openRedisStore({ url, fleet, log });
    controller = startController({ source, store, settings: clusterSettings, log, clock: systemClock });
    await controller.idle();
    const ms = sameTime() - began;
    const bytes = wire().sent;
    const refused = controller.problems()[0];
    if (refused !== undefined) throw new Error(`the cluster is not accepted: ${refused.message}`);
    const { table } = decided();
    const memory = { objectsKiB, residentKiB: residentNowKiB(), peakKiB: peakKiB() };
    return { ms, revision: await publishedRevision(), entries: table.entries.size, bytes, ...memory };
  },
  async change(scenario, round) {
    const changes: Changed[] = [];
    let last = await publishedRevision();
    for (const edit of editsFor(scenario, round, source.snapshot())) {
      const edited = edit(source.snapshot());
      const sent = wire().sent;
      const at = sameTime();
      source.set(edited);
      await controller?.idle();
      const bytes = wire().sent - sent;
      const revision = await publishedRevision();
      if (revision <= last) throw new Error(`a change of "${scenario}" was not published`);
      last = revision;
      changes.push({ at, revision, bytes });
    }
    return changes;
  },
  digest: () => digestOf(decided().table),
  residentKiB: residentNowKiB,
});

function decided() {
  const translation = controller?.translation();
  if (translation === undefined) throw new Error('nothing was decided');
  return translation;
}

async function publishedRevision(): Promise<number> {
  const meta = await store?.table.meta();
  if (meta === undefined || !meta.complete) throw new Error('Redis holds no whole table');
  return meta.revision;
}
