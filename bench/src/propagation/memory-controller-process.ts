// Program `memory-controller-process.ts REDIS-URL FLEET LAYOUT`: a controller whose source is in memory. The parent process changes the
// source by RPC. LAYOUT is a `PropagationLayout` as JSON.
import { startController } from '@weir/controller';
import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore } from '@weir/store';
import { InMemorySource } from '../control/in-memory-cluster.ts';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { serveRpc } from '../processes/rpc.ts';
import { type PropagationLayout, propagationCluster, withServiceEndpoint } from './propagation-cluster.ts';
import type { EndpointName } from './topology.ts';

export type MemoryControllerRpc = {
  start(): Promise<void>;
  /** Makes `to` the endpoint of a Service. Returns the time of the change on the machine's monotonic clock. */
  switchEndpoint(service: number, to: EndpointName): number;
};

const [url = '', fleet = '', text = ''] = process.argv.slice(2);
const layout = JSON.parse(text) as PropagationLayout;
const source = new InMemorySource(propagationCluster(layout));
const log = silentLogger();

serveRpc<MemoryControllerRpc>({
  async start() {
    const store = await openRedisStore({ url, fleet, log });
    const controller = startController({ source, store, settings: DEFAULT_FLEET_SETTINGS, log, clock: systemClock });
    await controller.idle();
    const problem = controller.problems()[0];
    if (problem !== undefined) throw new Error(`the controller rejects the cluster: ${problem.message}`);
  },
  switchEndpoint(service, to) {
    const next = withServiceEndpoint(source.snapshot(), service, layout.backends[to]);
    const at = monotonicMs();
    source.replace(next, Date.now());
    return at;
  },
});
