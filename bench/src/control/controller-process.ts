// Program `controller-process.ts REDIS-URL FLEET SERVICES`: a controller whose source is in memory. The parent process changes the source
// by RPC.
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
  /** Time from the start of the controller until the complete table is published. */
  readonly ms: number;
  readonly revision: number;
  readonly entries: number;
  readonly bytes: number;
  /** Resident memory before the start, when the process already holds the objects of the source. */
  readonly objectsKiB: number;
  readonly residentKiB: number;
  readonly peakKiB: number;
};

/** One published change. `at`: when the source changed; `revision`: the table revision with the change; `bytes`: sent to Redis. */
export type PublishedChange = { readonly at: number; readonly revision: number; readonly bytes: number };

export type ControllerRpc = {
  start(): Promise<ControllerStart>;
  change(scenario: ChangeScenario, round: number): Promise<readonly PublishedChange[]>;
  digest(): string;
  residentKiB(): number;
};

const [url = '', fleet = '', services = '0'] = process.argv.slice(2);
const socketBytes = countSocketBytes();
const source = new InMemorySource(inMemoryCluster(Number(services)));
const log = silentLogger();
let store: Store | undefined;
let controller: Controller | undefined;

serveRpc<ControllerRpc>({
  async start() {
    const objectsKiB = ownResidentKiB();
    const startedAt = monotonicMs();
    store = await openRedisStore({ url, fleet, log });
    controller = startController({ source, store, settings: IN_MEMORY_CLUSTER_SETTINGS, log, clock: systemClock });
    await controller.idle();
    const ms = monotonicMs() - startedAt;
    const bytes = socketBytes().sent;
    const problem = controller.problems()[0];
    if (problem !== undefined) throw new Error(`the controller rejects the cluster: ${problem.message}`);
    const { table } = currentTranslation();
    const memory = { objectsKiB, residentKiB: ownResidentKiB(), peakKiB: peakResidentKiB() };
    return { ms, revision: await publishedRevision(), entries: table.entries.size, bytes, ...memory };
  },
  async change(scenario, round) {
    const changes: PublishedChange[] = [];
    let previousRevision = await publishedRevision();
    for (const edit of editsFor(scenario, round, source.snapshot())) {
      const edited = edit(source.snapshot());
      const sentBefore = socketBytes().sent;
      const at = monotonicMs();
      source.replace(edited);
      await controller?.idle();
      const bytes = socketBytes().sent - sentBefore;
      const revision = await publishedRevision();
      if (revision <= previousRevision)
        throw new Error(`the controller published no revision for a change of "${scenario}"`);
      previousRevision = revision;
      changes.push({ at, revision, bytes });
    }
    return changes;
  },
  digest: () => tableDigest(currentTranslation().table),
  residentKiB: ownResidentKiB,
});

function currentTranslation() {
  const translation = controller?.translation();
  if (translation === undefined) throw new Error('the controller has no translation');
  return translation;
}

async function publishedRevision(): Promise<number> {
  const meta = await store?.table.meta();
  if (meta === undefined || !meta.complete) throw new Error('Redis has no complete table');
  return meta.revision;
}
