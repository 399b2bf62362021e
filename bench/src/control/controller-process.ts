// A process of its own: `controller-process.ts REDIS-URL FLEET SERVICES`. A controller on a source that it is told to edit.
import { type Controller, startController } from '@weir/controller';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore, type Store } from '@weir/store';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { ownResidentKiB, peakResidentKiB } from '../measure/proc-stats.ts';
import { serveRpc } from '../processes/rpc.ts';
import { editsFor } from './edits.ts';
import { IN_MEMORY_CLUSTER_SETTINGS, InMemorySource, inMemoryCluster } from './in-memory-cluster.ts';
import type { ChangeScenario } from './options.ts';
import { countSocketBytes } from './socket-bytes.ts';
import { tableDigest } from './table-digest.ts';

export type ControllerStart = {
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
export type PublishedChange = { readonly at: number; readonly revision: number; readonly bytes: number };

export type ControllerRpc = {
  start(): Promise<ControllerStart>;
  change(scenario: ChangeScenario, round: number): Promise<readonly PublishedChange[]>;
  digest(): string;
  residentKiB(): number;
};

const [url = '', fleet = '', services = '0'] = process.argv.slice(2);
const wire = countSocketBytes();
const source = new InMemorySource(inMemoryCluster(Number(services)));
const log = silentLogger();
let store: Store | undefined;
let controller: Controller | undefined;

serveRpc<ControllerRpc>({
  async start() {
    const objectsKiB = ownResidentKiB();
    const began = monotonicMs();
    store = await openRedisStore({ url, fleet, log });
    controller = startController({ source, store, settings: IN_MEMORY_CLUSTER_SETTINGS, log, clock: systemClock });
    await controller.idle();
    const ms = monotonicMs() - began;
    const bytes = wire().sent;
    const refused = controller.problems()[0];
    if (refused !== undefined) throw new Error(`the cluster is not accepted: ${refused.message}`);
    const { table } = currentTranslation();
    const memory = { objectsKiB, residentKiB: ownResidentKiB(), peakKiB: peakResidentKiB() };
    return { ms, revision: await publishedRevision(), entries: table.entries.size, bytes, ...memory };
  },
  async change(scenario, round) {
    const changes: PublishedChange[] = [];
    let last = await publishedRevision();
    for (const edit of editsFor(scenario, round, source.snapshot())) {
      const edited = edit(source.snapshot());
      const sent = wire().sent;
      const at = monotonicMs();
      source.replace(edited);
      await controller?.idle();
      const bytes = wire().sent - sent;
      const revision = await publishedRevision();
      if (revision <= last) throw new Error(`a change of "${scenario}" was not published`);
      last = revision;
      changes.push({ at, revision, bytes });
    }
    return changes;
  },
  digest: () => tableDigest(currentTranslation().table),
  residentKiB: ownResidentKiB,
});

function currentTranslation() {
  const translation = controller?.translation();
  if (translation === undefined) throw new Error('nothing was decided');
  return translation;
}

async function publishedRevision(): Promise<number> {
  const meta = await store?.table.meta();
  if (meta === undefined || !meta.complete) throw new Error('Redis holds no whole table');
  return meta.revision;
}
