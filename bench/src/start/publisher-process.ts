// Program `publisher-process.ts REDIS-URL FLEET LAYOUT`: a controller that publishes a routing table. LAYOUT is a `StartLayout` as JSON.
import { startController } from '@weir/controller';
import { entriesOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore } from '@weir/store';
import { IN_MEMORY_CLUSTER_SETTINGS, InMemorySource } from '../control/in-memory-cluster.ts';
import { serveRpc } from '../processes/rpc.ts';
import { type StartLayout, startCluster } from './start-cluster.ts';

export type PublisherRpc = {
  /** Publishes the table. Returns the number of entries in the table, and the number of listeners on the node of the layout. */
  publish(): Promise<{ readonly entries: number; readonly listeners: number }>;
};

const [url = '', fleet = '', text = ''] = process.argv.slice(2);
const layout = JSON.parse(text) as StartLayout;
const log = silentLogger();

serveRpc<PublisherRpc>({
  async publish() {
    const source = new InMemorySource(startCluster(layout));
    const store = await openRedisStore({ url, fleet, log });
    const controller = startController({
      source,
      store,
      settings: IN_MEMORY_CLUSTER_SETTINGS,
      log,
      clock: systemClock,
    });
    await controller.idle();
    const problem = controller.problems()[0];
    if (problem !== undefined) throw new Error(`the controller rejects the cluster: ${problem.message}`);
    const table = controller.translation()?.table;
    if (table === undefined) throw new Error('the controller has no translation');
    const listeners = entriesOf(table, 'listener').filter(({ node }) => node === layout.node.name);
    return { entries: table.entries.size, listeners: listeners.length };
  },
});
