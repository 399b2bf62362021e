// A controller and three proxies that share a Redis with failover. The controller runs in this process, and reads manifests from a directory;
// each proxy is a process.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDirectorySource, type StatusSink, startController } from '@weir/controller';
import { DEFAULT_FLEET_SETTINGS, monthOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore, type Store } from '@weir/store';
import { eventually, spawnProcess, temporaryDirectory } from '@weir/testkit';

const PROXY = fileURLToPath(new URL('../../../packages/proxy/src/main.ts', import.meta.url));
const ADMIN_PORT = 8_687;
const IGNORED_STATUS: StatusSink = { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' };
const NODES = ['node-1', 'node-2', 'node-3'] as const;

export interface RedisFleetOptions {
  readonly redisUrl: string;
  readonly fleet: string;
  /** The manifests at the start. */
  readonly manifests: string;
  /** Additional settings of the proxies. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * The addresses of the nodes, of which none is a loopback address. The proxies then have admin servers on these addresses, so that the
   * controller can check whether a proxy has ended. By default, the nodes have random loopback addresses and no admin servers.
   */
  readonly reachableAddresses?: readonly string[];
}

export interface RedisFleet extends AsyncDisposable {
  /** The addresses of the proxies. */
  readonly addresses: readonly string[];
  /** The store of the controller. */
  readonly store: Store;
  /** How often and for how many milliseconds in total the controller has lost Redis. */
  readonly outages: { readonly count: number; readonly totalMs: number };
  write(manifests: string): void;
  /** Waits until all proxies have applied the routing table that is in Redis. */
  waitUntilApplied(): Promise<void>;
  /** Returns the usage of a tenant in this month. */
  usageOf(tenant: string): Promise<Traffic>;
  /** Returns what each proxy says about the ledger in its heartbeat. */
  ledgerWarnings(): Promise<readonly string[]>;
  /** Ends the proxy of a node with SIGKILL. */
  kill(index: number): Promise<void>;
  /** Returns the number of each proxy's incarnation. A proxy that restarts gets another number. */
  incarnations(): Promise<readonly number[]>;
}

/** Traffic in the words of the ledger: `receivedBytes` is what clients have sent. */
export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
}

export async function startRedisFleet(options: RedisFleetOptions): Promise<RedisFleet> {
  const { redisUrl, fleet, manifests, settings = {}, reachableAddresses } = options;
  const network = `127.${randomInt(1, 255)}.${randomInt(0, 256)}`;
  const addresses = reachableAddresses ?? NODES.map((_, index) => `${network}.${index + 1}`);
  await using stack = new AsyncDisposableStack();
  const directory = stack.use(temporaryDirectory('redis-fleet'));
  const folder = join(directory.path, 'manifests');
  mkdirSync(folder);
  const write = (text: string): void => {
    const draft = join(directory.path, 'draft.yaml');
    writeFileSync(draft, text);
    renameSync(draft, join(folder, 'manifests.yaml'));
  };
  write(manifests);
  const log = silentLogger();
  const store = await openRedisStore({ url: redisUrl, fleet, log });
  stack.defer(() => store.close());
  const outages = trackOutages(store);
  const nodes = NODES.map((name, index) => ({ name, address: addresses[index] ?? '' }));
  const source = await openDirectorySource({ paths: [folder], nodes, clock: systemClock });
  stack.defer(() => source.close());
  const controller = startController({
    source,
    store,
    settings: {
      ...DEFAULT_FLEET_SETTINGS,
      classless: true,
      nodesPerService: NODES.length,
      secretAccess: { kind: 'none' },
    },
    log,
    clock: systemClock,
    // A controller reads heartbeats only if it reports status.
    ...(reachableAddresses !== undefined && { status: IGNORED_STATUS }),
  });
  stack.defer(() => controller.close());
  await controller.idle();
  const proxies = await Promise.all(
    NODES.map((node, index) =>
      spawnProcess({
        name: node,
        command: process.execPath,
        args: ['--conditions=source', PROXY],
        readyWhen: /the first routing table is in effect/,
        env: {
          ...process.env,
          WEIR_FLEET: fleet,
          WEIR_NODE: node,
          WEIR_WORKERS: '1',
          WEIR_ADMIN: reachableAddresses === undefined ? 'off' : `${reachableAddresses[index]}:${ADMIN_PORT}`,
          WEIR_REDIS_URL: redisUrl,
          WEIR_STATE: join(directory.path, node),
          ...settings,
        },
      }),
    ),
  );
  for (const proxy of proxies) stack.use(proxy);
  const running = stack.move();
  return {
    addresses,
    store,
    outages,
    write,
    async waitUntilApplied() {
      await eventually(
        async () => {
          const meta = await store.table.meta();
          const applied = (await store.heartbeats.list()).map((heartbeat) => heartbeat.applied?.id);
          assert.deepEqual(
            applied,
            NODES.map(() => meta?.id),
          );
        },
        { timeoutMs: 60_000, intervalMs: 50 },
      );
    },
    async usageOf(tenant) {
      const rows = await store.usage.rows(monthOf(Date.now()), tenant);
      const sum = (name: keyof Traffic): number => rows.reduce((total, { counters }) => total + counters[name], 0);
      return {
        receivedBytes: sum('receivedBytes'),
        sentBytes: sum('sentBytes'),
        connections: sum('connections'),
      };
    },
    ledgerWarnings: async () =>
      (await store.heartbeats.list()).map(({ hostAdvice = [] }) =>
        hostAdvice.filter((advice) => advice.includes('ledger')).join(),
      ),
    async kill(index) {
      await proxies[index]?.stop('SIGKILL');
    },
    incarnations: async () => (await store.heartbeats.list()).map(({ life }) => life),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function trackOutages(store: Store): RedisFleet['outages'] {
  const outages = { count: 0, totalMs: 0 };
  let lostAt: number | undefined;
  store.onConnectionChange((state) => {
    if (state === 'away') {
      outages.count += 1;
      lostAt = performance.now();
    } else if (state === 'ready' && lostAt !== undefined) {
      outages.totalMs += performance.now() - lostAt;
      lostAt = undefined;
    }
  });
  return outages;
}
