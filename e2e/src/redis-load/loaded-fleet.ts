// A fleet under load: clients that count, a tenant at its limit of connections, a suspended tenant, and a controller that publishes changes.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { connectClient, echoServer, eventually, httpBackend } from '@weir/testkit';
import { type RedisFleet, type RedisFleetOptions, startRedisFleet } from './redis-fleet.ts';
import { CountingClients, LimitedClients, SuspendedClients } from './steady-clients.ts';

const MAX_CONNECTIONS = 6;
const PORTS = { tcp: 7001, http: 7002, limited: 7003, suspended: 7004, added: 7100 } as const;
const BODY = 'a file of the shop\n';
const CHANGE_INTERVAL_MS = 300;
const WAIT = { timeoutMs: 60_000, intervalMs: 50 };

export interface LoadedFleet extends AsyncDisposable, Pick<RedisFleet, 'ledgerWarnings'> {
  /**
   * Runs `fault` under load. Asserts that no client failed, that the ledger has exactly what the clients counted, that limit and suspension
   * held, that changes reach all proxies, and that no proxy restarted.
   */
  survives(t: TestContext, fault: () => Promise<void>): Promise<void>;
}

export async function startLoadedFleet(
  options: Pick<RedisFleetOptions, 'redisUrl' | 'fleet' | 'settings'>,
): Promise<LoadedFleet> {
  await using stack = new AsyncDisposableStack();
  const [first, second] = [stack.use(await echoServer()), stack.use(await echoServer())];
  const web = await httpBackend({ handler: (_request, response) => void response.end(BODY) });
  stack.defer(() => web.close());
  let version = 0;
  const extraPorts: number[] = [];
  /** Returns manifests that differ in each version, but serve the same Services to the clients. */
  const manifests = (): string =>
    [
      ...service('shop', 'tcp', PORTS.tcp, version % 2 === 0 ? [first.port] : [first.port, second.port]),
      ...service('shop', 'http', PORTS.http, [web.port], 'http'),
      ...service('game', 'world', PORTS.limited, [first.port]),
      ...service('bad', 'door', PORTS.suspended, [first.port]),
      ...extraPorts.flatMap((port) => service('news', `added-${port}`, port, [second.port])),
      POLICY,
      SUSPENSION,
    ].join('---\n');
  const fleet = stack.use(await startRedisFleet({ ...options, manifests: manifests() }));
  const { addresses } = fleet;
  await fleet.waitUntilApplied();
  const clients = new CountingClients({
    tcp: { addresses, port: PORTS.tcp },
    http: { addresses, port: PORTS.http },
    bodyBytes: BODY.length,
  });
  stack.use(clients);
  const limited = stack.use(new LimitedClients({ addresses, port: PORTS.limited }));
  const suspended = stack.use(new SuspendedClients({ addresses, port: PORTS.suspended }));
  await eventually(() => assert.ok(limited.open >= MAX_CONNECTIONS - 2 && suspended.refused > 3), WAIT);
  const incarnations = await fleet.incarnations();
  const running = stack.move();

  const assertLedger = (): Promise<void> =>
    clients.hold(async () => {
      await eventually(async () => {
        assert.deepEqual(await fleet.usageOf('shop'), clients.traffic);
      }, WAIT);
    });

  return {
    ledgerWarnings: fleet.ledgerWarnings,
    async survives(t, fault) {
      const started = { completed: clients.completed, ...fleet.outages, at: performance.now() };
      const changing = setInterval(() => {
        version += 1;
        fleet.write(manifests());
      }, CHANGE_INTERVAL_MS);
      try {
        await fault();
        const goal = clients.completed + 30;
        await eventually(() => assert.ok(clients.completed >= goal), WAIT);
      } finally {
        clearInterval(changing);
      }
      const port = PORTS.added + extraPorts.length;
      extraPorts.push(port);
      fleet.write(manifests());
      await eventually(() => exchangeAt(addresses, port), WAIT);
      await fleet.waitUntilApplied();
      await assertLedger();
      assert.deepEqual([clients.failures, limited.failures, suspended.failures], [[], [], []]);
      assert.ok(limited.maxOpen <= MAX_CONNECTIONS, `${limited.maxOpen} connections of ${MAX_CONNECTIONS}`);
      // An idle proxy keeps at most one unit of a small limit.
      await eventually(() => assert.ok(limited.open >= MAX_CONNECTIONS - 2), WAIT);
      assert.ok(limited.refused > 0);
      // On a busy machine a heartbeat may expire. A proxy that has started again would have another incarnation.
      await eventually(async () => assert.deepEqual(await fleet.incarnations(), incarnations), WAIT);
      const { outages } = fleet;
      t.diagnostic(
        `${clients.completed - started.completed} operations in ${Math.round(performance.now() - started.at)} ms, 0 failed; the controller lost Redis ${outages.count - started.count} times, for ${Math.round(outages.totalMs - started.totalMs)} ms; ledger ${JSON.stringify(clients.traffic)}; at most ${limited.maxOpen} of ${MAX_CONNECTIONS} connections, ${limited.refused} refused; ${suspended.refused} clients of the suspended tenant refused; ${version} changes`,
      );
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function exchangeAt(addresses: readonly string[], port: number): Promise<void> {
  for (const host of addresses) {
    await using client = await connectClient({ host, port });
    await client.send('x');
    await client.take(1);
    await client.end();
    await client.ended;
  }
}

function service(
  namespace: string,
  name: string,
  port: number,
  endpoints: readonly number[],
  appProtocol = 'tcp',
): string[] {
  return [
    `apiVersion: v1
kind: Service
metadata: { namespace: ${namespace}, name: ${name} }
spec: { type: LoadBalancer, ports: [{ port: ${port}, appProtocol: ${appProtocol} }] }
`,
    ...endpoints.map(
      (endpoint) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: ${namespace}, name: ${name}-${endpoint}, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: ${endpoint} }]
endpoints: [{ addresses: [127.0.0.1] }]
`,
    ),
  ];
}

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: { name: game }
spec:
  namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: game } }
  nodesPerService: 3
  limits: { connections: ${MAX_CONNECTIONS} }
`;

const SUSPENSION = `apiVersion: weir.dev/v1alpha1
kind: Suspension
metadata: { name: bad }
spec: { target: { type: Tenant, tenant: bad }, message: closed }
`;
