import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Change,
  createMatcher,
  diff,
  EMPTY_TABLE,
  type Endpoint,
  type Matcher,
  movedResources,
  patchMatcher,
  type RoutingTable,
  type Suspension,
} from '@weir/model';
import { connectClient, echoServer } from '@weir/testkit';
import fc from 'fast-check';
import { packTable } from '../../src/supervisor/table-delivery.ts';
import type { ListenerConfig, SentCommand, TableCommand } from '../../src/worker/messages.ts';
import { CommandRunner } from '../../src/worker/table-delivery.ts';
import { routeEntry } from '../fixtures/http-routes.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const HOST = '192.0.2.1';

describe('Services that are decoded lazily', () => {
  test('have the same routes as Services decoded at once, whenever clients connect and whatever changes', () => {
    const histories = fc.tuple(
      arbitraryTable(8),
      fc.array(fc.tuple(arbitraryTable(0), fc.array(port, { maxLength: 3 })), { maxLength: 4 }),
    );
    let lazyCount = 0;
    fc.assert(
      fc.property(histories, ([first, later]) => {
        const [eager, lazy] = [new EagerWorker(), new LazyWorker()];
        let table = EMPTY_TABLE;
        for (const [next, connected] of [[first, []] as const, ...later]) {
          const changes = diff(table, next);
          const isFirst = table === EMPTY_TABLE;
          const moved = movedResources(eager.matcher, changes);
          const command: TableCommand = {
            kind: 'table',
            changes,
            slots: [],
            movedResources: moved,
            ...(isFirst && { isFirst }),
          };
          eager.apply(command);
          lazyCount += lazy.apply(packTable(command));
          for (const each of connected) lazy.connect(keyOf(each));
          table = next;
        }
        for (const each of PORTS) lazy.connect(keyOf(each));
        assert.deepEqual(routesOf(lazy.matcher), routesOf(eager.matcher));
      }),
    );
    assert.ok(lazyCount > 0);
  });

  test('do not delay an HTTP route of another port, and do not bring a deleted one back', () => {
    const services = PORTS.map((each, index): TestService => ({ name: `s${index}`, port: each, endpoints: [] }));
    const settings = { hosts: ['b.example.com'], httpPorts: [PORT] };
    const sharing: TestService = { name: 'sharing', port: PORT, endpoints: [], shared: true, settings };
    const { entries } = tableFor({ a: HOST }, [...services, sharing]);
    // The backend has a listener on this node, but none for the HTTP route.
    const entry = { ...routeEntry('r', { s3: 1 }, { hosts: ['a.example.com'] }), ports: [PORT] };
    const first: Change[] = [...entries.values(), entry].map((each) => ({ kind: 'put', entry: each }));
    const [eager, lazy] = [new EagerWorker(), new LazyWorker()];
    const statesAfter = (changes: readonly Change[], isFirst?: true): readonly unknown[] => {
      const moved = movedResources(eager.matcher, changes);
      const command: TableCommand = {
        kind: 'table',
        changes,
        slots: [],
        movedResources: moved,
        ...(isFirst && { isFirst }),
      };
      eager.apply(command);
      if (isFirst) assert.ok(lazy.apply(packTable(command)) > 0);
      else lazy.apply(packTable(command));
      for (const each of isFirst ? [] : PORTS) lazy.connect(keyOf(each));
      const request = { method: 'GET', host: 'a.example.com', path: '/', query: '', header: () => undefined };
      return [eager, lazy].map(({ matcher }) => {
        const found = matcher.listeners.get(keyOf(PORT))?.findByRequest(request, () => 0);
        return found?.match.route.id;
      });
    };
    assert.deepEqual(statesAfter(first, true), [entry.id, entry.id]);
    assert.deepEqual(statesAfter([{ kind: 'delete', id: entry.id }]), [undefined, undefined]);
  });

  test('serve their first client', async () => {
    await using backend = await echoServer();
    using worker = await workerWithLazyService([endpointOf(backend)]);
    await using client = await connectClient({ host: worker.host, port: LAZY_PORT });
    await client.send('a');
    assert.equal((await client.take(1)).toString(), 'a');
  });

  test('serve their first client with the latest endpoints', async () => {
    await using backend = await echoServer();
    using worker = await workerWithLazyService([]);
    const { entries } = tableFor({ a: worker.host }, [lazyService([endpointOf(backend)])]);
    const changes = [...entries.values()]
      .filter(({ kind }) => kind === 'endpoints')
      .map((entry): Change => ({ kind: 'put', entry }));
    worker.apply({ kind: 'table', changes, slots: [] });
    await using client = await connectClient({ host: worker.host, port: LAZY_PORT });
    await client.send('a');
    assert.equal((await client.take(1)).toString(), 'a');
  });

  test('are suspended before they are decoded', async () => {
    await using backend = await echoServer();
    using worker = await workerWithLazyService([endpointOf(backend)]);
    worker.apply({ kind: 'suspensions', suspensions: [SUSPENSION], now: 1 });
    // `connectClient` rejects if the reset arrives before the client sees the connection as connected.
    await connectClient({ host: worker.host, port: LAZY_PORT }).then(
      ({ ended }) => ended,
      () => undefined,
    );
    assert.deepEqual(worker.outcomes(), { 'cut-off': 1 });
  });
});

const PORTS = Array.from({ length: 10 }, (_, index) => 1_000 + index);
const port = fc.constantFrom(...PORTS);
const keyOf = (each: number): string => `TCP/${HOST}/${each}`;

/** Random tables of at least `minLength` Services. Each Service has a port, and the first two may share one. */
function arbitraryTable(minLength: number): fc.Arbitrary<RoutingTable> {
  const names = fc.uniqueArray(fc.nat(11), { minLength, maxLength: 10 });
  const shuffled = fc.shuffledSubarray(PORTS, { minLength: PORTS.length });
  const endpoints = fc.array(fc.nat(3).map((last): Endpoint => ({ address: `10.0.0.${last}`, port: 80 })));
  return fc
    .tuple(names, shuffled, fc.array(endpoints, { minLength: 12 }), fc.boolean())
    .map(([picked, ports, of, shares]) =>
      tableFor(
        { a: HOST },
        picked.map((name, index): TestService => {
          const shared = shares && index < 2;
          return {
            name: `s${name}`,
            port: ports[shared ? 0 : index] as number,
            endpoints: of[name] ?? [],
            shared,
            settings: shared ? { hosts: [`s${name}.example.com`], tlsPassthrough: true } : {},
          };
        }),
      ),
    );
}

class EagerWorker {
  readonly matcher: Matcher = createMatcher(EMPTY_TABLE, 'a');

  apply({ changes }: TableCommand): void {
    patchMatcher(this.matcher, changes);
  }
}

class LazyWorker {
  readonly matcher: Matcher = createMatcher(EMPTY_TABLE, 'a');
  readonly #commands = new CommandRunner({
    apply: (command) => {
      if (command.kind === 'table') patchMatcher(this.matcher, command.changes);
    },
    // This clock stands still, so the time slice never ends and commands are applied before `add` returns.
    now: () => 0,
  });

  /** Returns how many Services of the command stay encoded. */
  apply(command: SentCommand): number {
    this.#commands.add(command);
    if (command.kind !== 'packed-table') return 0;
    return command.lazyServices?.filter((each) => each !== null).length ?? 0;
  }

  connect(route: string): void {
    this.#commands.loadLazyRoute(route);
  }
}

function routesOf({ routes }: Matcher): unknown[] {
  return [...routes.values()]
    .map(({ key, listener, service, endpoints }) => ({ key, listener, service, endpoints }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

const LAZY_PORT = PORT + 1;
const lazyService = (endpoints: readonly Endpoint[]): TestService => ({ name: 'lazy', port: LAZY_PORT, endpoints });

/** Starts a worker with an open listener of a Service that is not decoded yet. */
async function workerWithLazyService(endpoints: readonly Endpoint[]): Promise<WorkerInTest> {
  const worker = await startWorkerInTest(webService([]));
  const { host } = worker;
  const others = PORTS.map((each): TestService => ({ name: `s${each}`, port: each, endpoints: [] }));
  const table = tableFor({ a: host }, [...others, lazyService(endpoints)]);
  const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  const slots = [[uidOf(lazyService([])), 1]] as const;
  const command = packTable({ kind: 'table', changes, slots, isFirst: true });
  assert.ok(
    command.kind === 'packed-table' && command.lazyServices?.some((each) => each?.[0] === uidOf(lazyService([]))),
  );
  worker.apply(command);
  const listener: ListenerConfig = {
    id: 2,
    key: `TCP/${host}/${LAZY_PORT}`,
    protocol: 'TCP',
    address: host,
    port: LAZY_PORT,
  };
  worker.apply({ kind: 'open-listener', listener });
  while (!worker.answers.some((answer) => answer.kind === 'listening' && answer.listenerId === 2)) await nextTurn();
  return {
    ...worker,
    [Symbol.dispose]() {
      worker.apply({ kind: 'close-listener', listener });
      worker[Symbol.dispose]();
    },
  };
}

const SUSPENSION: Suspension = {
  uid: 'c',
  name: 'unpaid',
  target: { kind: 'tenant', tenant: 'shop' },
  message: '',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: null,
};
