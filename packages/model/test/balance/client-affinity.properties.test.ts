import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type AffinityTable,
  type Balancer,
  buildPool,
  createAffinityTable,
  createBalancer,
  EMPTY_POOL,
  type EndpointPool,
  updateEndpointStats,
} from '@weir/model';
import fc from 'fast-check';
import { balancerOptions, clientOf, endpointStatsList, routeOf } from '../fixtures/balance.ts';

const HOUR = 3_600_000;
const CLIENTS = Array.from({ length: 300 }, (_, i) => i);
const ENDPOINTS = endpointStatsList(12).map(({ endpoint }) => endpoint);

/** A worker with the balancer of one Service. The worker keeps the balancer when the endpoints of the Service change. */
class Worker {
  nowMs = 0;
  #pool: EndpointPool = EMPTY_POOL;
  readonly #balancer: Balancer;

  constructor({
    affinityTable,
    uid = 'uid',
    timeoutMs = HOUR,
  }: { affinityTable?: AffinityTable; uid?: string; timeoutMs?: number }) {
    const settings = { affinity: { kind: 'client-ip', timeoutMs } } as const;
    const tools = balancerOptions(1, { affinityTable, now: () => this.nowMs });
    this.#balancer = createBalancer(routeOf(settings, { uid }), tools);
  }

  serve(up: readonly number[]): void {
    const endpoints = [...up].sort((a, b) => a - b).flatMap((index) => ENDPOINTS[index] ?? []);
    const allStats = updateEndpointStats(endpoints, this.#pool.all, { now: this.nowMs, departed: () => undefined });
    this.#pool = buildPool(this.#pool, allStats, { zone: null, maglev: undefined });
  }

  meet(client: number, port?: number): string | undefined {
    return this.#balancer.choose(this.#pool, clientOf(client, port), [])?.endpoint.address;
  }

  meetAll(): (string | undefined)[] {
    return CLIENTS.map((client) => this.meet(client));
  }
}

const createTable = (entries = 4_096): AffinityTable => createAffinityTable(new Uint32Array(entries * 4));

describe('ClientIP affinity', () => {
  test('keeps a client at its endpoint over any history, while the endpoint exists and the timeout has not passed', () => {
    const step = fc.record({
      up: fc.subarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 1 }),
      ms: fc.integer({ min: 0, max: 25_000 }),
      clients: fc.array(fc.nat(20), { maxLength: 10 }),
      worker: fc.nat(1),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (history) => {
        const affinityTable = createTable();
        const workers = [
          new Worker({ affinityTable, timeoutMs: 30_000 }),
          new Worker({ affinityTable, timeoutMs: 30_000 }),
        ];
        const last = new Map<number, { readonly address: string | undefined; readonly at: number }>();
        let now = 5_000;
        for (const { up, ms, clients, worker } of history) {
          now += ms;
          for (const each of workers) {
            each.nowMs = now;
            each.serve(up);
          }
          const addresses = new Set(up.map((index) => ENDPOINTS[index]?.address));
          for (const client of clients) {
            const address = workers[worker]?.meet(client);
            assert.ok(addresses.has(address));
            const known = last.get(client);
            if (known !== undefined && now - known.at < 30_000 && addresses.has(known.address)) {
              assert.equal(address, known.address);
            }
            last.set(client, { address, at: now });
          }
        }
      }),
    );
  });

  test('moves no client to an added endpoint within the timeout, and about its share afterwards', () => {
    const worker = new Worker({ affinityTable: createTable() });
    worker.serve([0, 1, 2]);
    const before = worker.meetAll();
    worker.serve([0, 1, 2, 3]);
    worker.nowMs = HOUR - 1_000;
    assert.deepEqual(worker.meetAll(), before);
    worker.nowMs = 2 * HOUR;
    const moved = worker.meetAll().filter((address, i) => address !== before[i]).length;
    assert.ok(moved > 45 && moved < 105, `${moved} of 300, 75 expected`);
  });

  test('never ends a timeout early, at whatever fraction of a second it began', () => {
    const worker = new Worker({ affinityTable: createTable(), timeoutMs: 4_000 });
    worker.nowMs = 999;
    worker.serve([0, 1, 2]);
    const before = worker.meetAll();
    worker.serve([0, 1, 2, 3, 4, 5]);
    worker.nowMs = 4_998;
    assert.deepEqual(worker.meetAll(), before);
  });

  test('restarts the timeout with each connection', () => {
    const worker = new Worker({ affinityTable: createTable() });
    worker.serve([0, 1, 2]);
    const before = worker.meetAll();
    worker.serve([0, 1, 2, 3, 4, 5]);
    for (let round = 1; round < 8; round += 1) {
      worker.nowMs = (round * HOUR) / 2;
      assert.deepEqual(worker.meetAll(), before);
    }
  });

  test('moves only the clients of an endpoint that leaves, and does not move them back when it returns', () => {
    const worker = new Worker({ affinityTable: createTable() });
    worker.serve([0, 1, 2, 3]);
    const before = worker.meetAll();
    worker.serve([0, 1, 3]);
    const meanwhile = worker.meetAll();
    for (const [i, address] of before.entries()) {
      if (address === ENDPOINTS[2]?.address) assert.notEqual(meanwhile[i], address);
      else assert.equal(meanwhile[i], address);
    }
    worker.serve([0, 1, 2, 3]);
    assert.deepEqual(worker.meetAll(), meanwhile);
  });

  test('chooses the same endpoint on proxies with the same history, and by hash on a proxy without history', () => {
    const [one, other] = [new Worker({ affinityTable: createTable() }), new Worker({ affinityTable: createTable() })];
    for (const up of [
      [0, 1, 2],
      [0, 1, 2, 3],
      [1, 2, 3],
      [1, 2, 3, 4, 5],
    ]) {
      for (const each of [one, other]) {
        each.nowMs += 1_000;
        each.serve(up);
      }
      assert.deepEqual(one.meetAll(), other.meetAll());
    }
    const [fresh, forgetful] = [new Worker({ affinityTable: createTable() }), new Worker({})];
    for (const each of [fresh, forgetful]) each.serve([0, 1, 2]);
    assert.deepEqual(fresh.meetAll(), forgetful.meetAll());
  });

  test('identifies a client by its address, not by its port', () => {
    const worker = new Worker({ affinityTable: createTable() });
    worker.serve([0, 1, 2, 3, 4, 5]);
    const ports = Array.from({ length: 50 }, (_, i) => worker.meet(1, 1_000 + i));
    assert.equal(new Set(ports).size, 1);
  });

  test('forgets the least recently seen clients when the table is full, and never chooses a missing endpoint', () => {
    const affinityTable = createTable(64);
    const worker = new Worker({ affinityTable });
    const forgetful = new Worker({});
    worker.serve([0, 1, 2]);
    worker.meetAll();
    for (const each of [worker, forgetful]) each.serve([0, 1, 2, 3, 4, 5]);
    const kept = CLIENTS.filter((client) => worker.meet(client) !== forgetful.meet(client)).length;
    assert.ok(kept <= 64, `${kept} of 64 entries`);
  });

  test('never chooses endpoints of another Service that shares the table', () => {
    const affinityTable = createTable(16);
    const [one, other] = [new Worker({ affinityTable, uid: 'one' }), new Worker({ affinityTable, uid: 'other' })];
    one.serve([0, 1, 2]);
    other.serve([3, 4, 5]);
    const [own, others] = [
      [0, 1, 2],
      [3, 4, 5],
    ].map((up) => new Set(up.map((i) => ENDPOINTS[i]?.address)));
    for (let round = 0; round < 3; round += 1) {
      for (const client of CLIENTS) {
        assert.ok(own?.has(one.meet(client)));
        assert.ok(others?.has(other.meet(client)));
      }
    }
  });
});

describe('the affinity table', () => {
  const KEY = { high: 0xdeadbeef, low: 0x12345678 };

  test('returns a recorded endpoint until the timeout is over, from the first second on', () => {
    const affinityTable = createTable(8);
    assert.equal(affinityTable.lookup(KEY, 0, 10), undefined);
    affinityTable.record(KEY, 0xfedcba98, 0);
    assert.equal(affinityTable.lookup(KEY, 10, 10), 0xfedcba98);
    assert.equal(affinityTable.lookup(KEY, 11, 10), undefined);
    affinityTable.record(KEY, 7, 11);
    assert.equal(affinityTable.lookup(KEY, 11, 10), 7);
  });

  test('replaces the least recently used entry when all probed entries are in use', () => {
    const affinityTable = createTable(8);
    for (let i = 0; i < 8; i += 1) affinityTable.record({ high: i, low: 0 }, 100 + i, i === 3 ? 1 : 50 + i);
    affinityTable.record({ high: 99, low: 0 }, 7, 60);
    const recalled = Array.from({ length: 8 }, (_, high) => affinityTable.lookup({ high, low: 0 }, 60, 100));
    assert.deepEqual(recalled, [100, 101, 102, undefined, 104, 105, 106, 107]);
    assert.equal(affinityTable.lookup({ high: 99, low: 0 }, 60, 100), 7);
  });

  test('matches no client with an entry that two workers wrote at once', () => {
    const words = new Uint32Array(8 * 4);
    const affinityTable = createAffinityTable(words);
    const [mine, theirs] = [
      { high: 1, low: 0 },
      { high: 2, low: 8 },
    ];
    affinityTable.record(mine, 0xaaaa, 1);
    const before = words.slice(0, 4);
    words.fill(0);
    affinityTable.record(theirs, 0xbbbb, 1);
    const after = words.slice(0, 4);
    for (let mask = 1; mask < 7; mask += 1) {
      for (let word = 0; word < 3; word += 1) words[word] = ((mask >> word) & 1 ? before : after)[word] as number;
      assert.equal(affinityTable.lookup(mine, 1, 10), undefined);
      assert.equal(affinityTable.lookup(theirs, 1, 10), undefined);
    }
  });

  test('rejects a table whose size is not a power of two', () => {
    assert.throws(() => createTable(12), /expected a power of two/);
    assert.throws(() => createTable(4), /expected a power of two/);
  });
});
