// A process of its own: `memory-process.ts REDIS-URL FLEET LAYOUT`. A controller on a source that it is told to edit.
import { startController } from '@weir/controller';
import { DEFAULT_SETTINGS } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore } from '@weir/store';
import { answer } from '../control/calls.ts';
import { EditedSource } from '../control/edited-source.ts';
import { sameTime } from '../control/same-time.ts';
import { type Layout, memoryCluster, withEndpoint } from './memory-cluster.ts';
import type { BackendName } from './places.ts';

export type MemoryCalls = {
  start(): Promise<void>;
  /** When, by the machine's monotonic clock, the source had it. */
  move(service: number, to: BackendName): number;
};

const [url = '', fleet = '', text = ''] = process.argv.slice(2);
const layout = JSON.parse(text) as Layout;
const source = new EditedSource(memoryCluster(layout));
const log = silentLogger();

answer<MemoryCalls>({
  async start() {
    const store = await openRedisStore({ url, fleet, log });
    const controller = startController({ source, store, settings: DEFAULT_SETTINGS, log, clock: systemClock });
    await controller.idle();
    const refused = controller.problems()[0];
    if (refused !== undefined) throw new Error(`the cluster is not accepted: ${refused.message}`);
  },
  move(service, to) {
    const next = withEndpoint(source.snapshot(), service, layout.backends[to]);
    const at = sameTime();
    source.set(next, Date.now());
    return at;
  },
});
