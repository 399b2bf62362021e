import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Change,
  type Cutoff,
  createMatcher,
  diff,
  EMPTY_TABLE,
  type Endpoint,
  holdersOf,
  type Matcher,
  patchMatcher,
  type RoutingTable,
} from '@weir/model';
import { connectRaw, echoServer } from '@weir/testkit';
import fc from 'fast-check';
import type { Door, SentOrder, TableOrder } from '../../src/worker/messages.ts';
import { pieceOf } from '../../src/worker/pieces.ts';
import { Sleepers } from '../../src/worker/sleepers.ts';
import { inPieces } from '../../src/workers/table-pieces.ts';
import { type LoneWorker, loneWorker } from '../fixtures/lone-worker.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, web } from '../fixtures/serving.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const HOST = '192.0.2.1';

describe('Services that nobody has asked for', () => {
  test('become what they would be if they had been read at once, whoever asks when and whatever changes', () => {
    const worlds = fc.tuple(world(8), fc.array(fc.tuple(world(0), fc.array(port, { maxLength: 3 })), { maxLength: 4 }));
    let slept = 0;
    fc.assert(
      fc.property(worlds, ([first, later]) => {
        const [prompt, lazy] = [new Prompt(), new Lazy()];
        let table = EMPTY_TABLE;
        for (const [next, asked] of [[first, []] as const, ...later]) {
          const changes = diff(table, next);
          const isFirst = table === EMPTY_TABLE;
          const holders = holdersOf(prompt.matcher, changes);
          const order: TableOrder = { kind: 'table', changes, slots: [], holders, ...(isFirst && { isFirst }) };
          prompt.follow(order);
          slept += lazy.follow(inPieces(order));
          for (const each of asked) lazy.ask(keyOf(each));
          table = next;
        }
        for (const each of PORTS) lazy.ask(keyOf(each));
        assert.deepEqual(routesOf(lazy.matcher), routesOf(prompt.matcher));
      }),
    );
    assert.ok(slept > 0);
  });

  test('serve the first client', async () => {
    await using backend = await echoServer();
    using worker = await sleeping([endpointOf(backend)]);
    await using client = await connectRaw({ host: worker.host, port: SLEEPER });
    await client.send('a');
    assert.equal((await client.take(1)).toString(), 'a');
  });

  test('serve the first client as they are by then', async () => {
    await using backend = await echoServer();
    using worker = await sleeping([]);
    const { entries } = tableFor({ a: worker.host }, [sleeper([endpointOf(backend)])]);
    const changes = [...entries.values()]
      .filter(({ kind }) => kind === 'endpoints')
      .map((entry): Change => ({ kind: 'put', entry }));
    worker.follow({ kind: 'table', changes, slots: [] });
    await using client = await connectRaw({ host: worker.host, port: SLEEPER });
    await client.send('a');
    assert.equal((await client.take(1)).toString(), 'a');
  });

  test('are cut off while they sleep', async () => {
    await using backend = await echoServer();
    using worker = await sleeping([endpointOf(backend)]);
    worker.follow({ kind: 'cutoffs', cutoffs: [CUTOFF], now: 1 });
    // It may be reset before it knows that it is connected.
    await connectRaw({ host: worker.host, port: SLEEPER }).then(
      ({ ended }) => ended,
      () => undefined,
    );
    assert.deepEqual(worker.outcomes(), { 'cut-off': 1 });
  });
});

const PORTS = Array.from({ length: 10 }, (_, index) => 1_000 + index);
const port = fc.constantFrom(...PORTS);
const keyOf = (each: number): string => `TCP/${HOST}/${each}`;

/** A table of Services, each with a port of its own, but for two that may share one; at least so many. */
function world(minLength: number): fc.Arbitrary<RoutingTable> {
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

class Prompt {
  readonly matcher: Matcher = createMatcher(EMPTY_TABLE, 'a');

  follow({ changes }: TableOrder): void {
    patchMatcher(this.matcher, changes);
  }
}

class Lazy {
  readonly matcher: Matcher = createMatcher(EMPTY_TABLE, 'a');
  readonly #sleepers = new Sleepers();

  /** How many sleep. */
  follow(sent: SentOrder): number {
    if (sent.kind === 'table') this.#follow(sent);
    if (sent.kind !== 'pieces') return 0;
    sent.ends.forEach((_end, index) => {
      const asleep = sent.sleepers?.[index];
      if (asleep) this.#sleepers.add(asleep, sent, index);
      else this.#follow(pieceOf(sent, index));
    });
    return sent.sleepers?.filter((each) => each !== null).length ?? 0;
  }

  ask(key: string): void {
    const slept = this.#sleepers.wakeAt(key);
    if (slept !== undefined) patchMatcher(this.matcher, slept.changes);
  }

  #follow(order: TableOrder): void {
    for (const slept of this.#sleepers.wakeFor(order)) patchMatcher(this.matcher, slept.changes);
    patchMatcher(this.matcher, order.changes);
  }
}

function routesOf({ routes }: Matcher): unknown[] {
  return [...routes.values()]
    .map(({ key, listener, service, endpoints }) => ({ key, listener, service, endpoints }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

const SLEEPER = PORT + 1;
const sleeper = (endpoints: readonly Endpoint[]): TestService => ({ name: 'sleeper', port: SLEEPER, endpoints });

/** A worker with a listener of a Service that it has been told of among many. */
async function sleeping(endpoints: readonly Endpoint[]): Promise<LoneWorker> {
  const worker = await loneWorker(web([]));
  const { host } = worker;
  const others = PORTS.map((each): TestService => ({ name: `s${each}`, port: each, endpoints: [] }));
  const table = tableFor({ a: host }, [...others, sleeper(endpoints)]);
  const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  const slots = [[uidOf(sleeper([])), 1]] as const;
  const order = inPieces({ kind: 'table', changes, slots, isFirst: true });
  assert.ok(order.kind === 'pieces' && order.sleepers?.some((each) => each?.[0] === uidOf(sleeper([]))));
  worker.follow(order);
  const door: Door = { id: 2, key: `TCP/${host}/${SLEEPER}`, protocol: 'TCP', address: host, port: SLEEPER };
  worker.follow({ kind: 'listen', door });
  while (!worker.answers.some((answer) => answer.kind === 'listening' && answer.door === 2)) await nextTurn();
  return {
    ...worker,
    [Symbol.dispose]() {
      worker.follow({ kind: 'unlisten', door });
      worker[Symbol.dispose]();
    },
  };
}

const CUTOFF: Cutoff = {
  uid: 'c',
  name: 'unpaid',
  target: { kind: 'tenant', tenant: 'shop' },
  message: '',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: null,
};
