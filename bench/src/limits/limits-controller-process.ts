// Program `limits-controller-process.ts REDIS-URL FLEET LAYOUT`: a controller whose source is in memory. One tenant has one Service on all
// nodes, and a limit of new connections per second. LAYOUT is a `LimitsLayout` as JSON.
import { type SourceSnapshot, type StatusSink, startController } from '@weir/controller';
import { DEFAULT_FLEET_SETTINGS, type ObjectMeta, UNRESTRICTED_POLICY } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore } from '@weir/store';
import { InMemorySource } from '../control/in-memory-cluster.ts';
import { serveRpc } from '../processes/rpc.ts';
import { propagationCluster } from '../propagation/propagation-cluster.ts';
import type { NodeAddress } from '../propagation/topology.ts';
import { LIMIT } from './phases.ts';

export type LimitsLayout = {
  readonly nodes: readonly NodeAddress[];
  readonly endpoint: { readonly host: string; readonly port: number };
};

export type LimitsControllerRpc = { start(): Promise<void> };

const [url = '', fleet = '', text = ''] = process.argv.slice(2);
const log = silentLogger();
/** A controller notices ended proxies only if it reports status. */
const status: StatusSink = { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' };

serveRpc<LimitsControllerRpc>({
  async start() {
    const source = new InMemorySource(limitedCluster(JSON.parse(text) as LimitsLayout));
    const store = await openRedisStore({ url, fleet, log });
    const settings = DEFAULT_FLEET_SETTINGS;
    const controller = startController({ source, store, settings, status, log, clock: systemClock });
    await controller.idle();
    const problem = controller.problems()[0];
    if (problem !== undefined) throw new Error(`the controller rejects the cluster: ${problem.message}`);
  },
});

function limitedCluster({ nodes, endpoint }: LimitsLayout): SourceSnapshot {
  const cluster = propagationCluster({ services: 1, nodes, backends: { A: endpoint, B: endpoint } });
  const meta: ObjectMeta = { uid: 'uid-limited', name: 'limited', labels: {}, annotations: {}, createdAt: null };
  return {
    ...cluster,
    policies: [{ ...meta, spec: { ...UNRESTRICTED_POLICY, limits: { newConnectionsPerSecond: LIMIT } } }],
  };
}
