// Law: whatever happens to reports, workers and processes, the ledger ends at what was counted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import { createMemoryStore, type Store } from '@weir/store';
import { temporaryDirectory } from '@weir/testkit';
import fc from 'fast-check';
import { CONNECTIONS, counterRow, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { SlotRegistry } from '../../src/metering/slot-registry.ts';
import { UsageFlusher } from '../../src/metering/usage-flusher.ts';
import { openStateDirectory } from '../../src/supervisor/state-directory.ts';
import { faultyStore, type ReportFate } from '../fixtures/faulty-store.ts';
import { usageByService } from '../fixtures/fleet.ts';

/** The middle of a month. */
const START = Date.UTC(2023, 10, 14);
const SERVICES = ['web', 'game'] as const;
const TENANTS = ['x', 'y'] as const;
type Service = (typeof SERVICES)[number];
type Tenant = (typeof TENANTS)[number];

type Step =
  | { readonly kind: 'count'; readonly service: Service; readonly bytes: number }
  | { readonly kind: 'move'; readonly service: Service; readonly tenant: Tenant }
  | { readonly kind: 'flush'; readonly fate: ReportFate }
  | { readonly kind: 'free' }
  | { readonly kind: 'minute' }
  | { readonly kind: 'worker dies' }
  | { readonly kind: 'crash' };

const service = fc.constantFrom(...SERVICES);
const fate = fc.constantFrom<ReportFate>('arrives', 'lost', 'unanswered', 'repeated', 'overtaken');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('count' as const), service, bytes: fc.nat(100_000) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('flush' as const), fate }) },
  fc.record({ kind: fc.constant('move' as const), service, tenant: fc.constantFrom(...TENANTS) }),
  fc.record({ kind: fc.constantFrom('free' as const, 'minute' as const, 'worker dies' as const, 'crash' as const) }),
);

/** How many former owners of slots are remembered: all there can be, and fewer, so that lives end early. */
for (const mostFormer of [TENANTS.length * SERVICES.length, 0]) {
  test(`the ledger ends at what was counted, with any report lost, repeated or reordered (${mostFormer} former owners)`, async () => {
    await assertLedgerMatches(mostFormer);
  });
}

test('a Service that comes back to a tenant whose total was forgotten is counted on, in a new life', async () => {
  await using directory = temporaryDirectory('ledger');
  const world = new LedgerScenario(directory.path, 0);
  await world.begin();
  const move = (tenant: Tenant): Step => ({ kind: 'move', service: 'web', tenant });
  const count = (bytes: number): Step => ({ kind: 'count', service: 'web', bytes });
  const settle: readonly Step[] = [{ kind: 'flush', fate: 'arrives' }, { kind: 'free' }];
  for (const each of [count(1_000), move('y'), ...settle, ...settle, move('x'), count(10)]) await world.take(each);
  await world.end();
  assert.deepEqual(await usageByService(world.store, START), world.counted());
  assert.equal(world.lives, 2);
});

async function assertLedgerMatches(mostFormer: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await using directory = temporaryDirectory('ledger');
      const world = new LedgerScenario(directory.path, mostFormer);
      await world.begin();
      for (const each of steps) await world.take(each);
      await world.end();
      assert.deepEqual(await usageByService(world.store, START), world.counted());
    }),
    { numRuns: 60 },
  );
}

/** One node's proxy, of which only the counting is real: a worker's part is played by hand. */
class LedgerScenario {
  readonly store: Store = createMemoryStore();
  readonly #directory: string;
  readonly #clock = new ManualClock(START);
  readonly #expected = new Map<Service, number[]>();
  readonly #tenants: Record<Service, Tenant> = { web: 'x', game: 'x' };
  readonly #mostFormer: number;
  #slots = new SlotRegistry();
  /** How many have begun. */
  lives = 0;
  #flusher!: UsageFlusher;
  #fate: ReportFate = 'arrives';
  #worker = 0;
  #slabs: SharedArrayBuffer[] = [];
  #mark = 0;

  constructor(directory: string, mostFormer: number) {
    this.#directory = directory;
    this.#mostFormer = mostFormer;
  }

  async begin(): Promise<void> {
    if (!(await this.store.usage.isSeeded())) await this.store.usage.seed({ months: [], bases: [] });
    const store = faultyStore(this.store, () => this.#fate);
    const common = { node: 'a', store, clock: this.#clock, log: silentLogger() };
    const state = await openStateDirectory({ ...common, path: this.#directory });
    this.#slots = new SlotRegistry({ mostFormer: this.#mostFormer });
    this.#flusher = new UsageFlusher({
      ...common,
      slots: this.#slots,
      startedAt: this.#clock.now(),
      highestIncarnation: state.highestIncarnation,
      state,
      onIncarnation: () => {
        this.lives += 1;
      },
    });
    this.#spawn();
  }

  async take(taken: Step): Promise<void> {
    switch (taken.kind) {
      case 'count':
        return this.#count(taken.service, taken.bytes);
      case 'move': {
        this.#slots.release(this.#owner(taken.service), this.#mark);
        this.#tenants[taken.service] = taken.tenant;
        this.#slots.assign(this.#owner(taken.service));
        return;
      }
      case 'flush':
        this.#fate = taken.fate;
        await this.#flusher.flush().catch(() => undefined);
        return;
      case 'free':
        this.#mark += 1;
        this.#flusher.forget(
          this.#slots.freeReleased(this.#mark, (_, reading) => this.#flusher.isSlotAcknowledged(reading)),
        );
        return;
      case 'minute':
        await this.#clock.advance(60_000);
        return;
      case 'worker dies':
        this.#slots.removeWorker(this.#worker);
        this.#spawn();
        return;
      case 'crash':
        // After the journal of the interval was written: what a SIGKILL may cost is what came after that.
        this.#fate = 'lost';
        await this.#flusher.flush().catch(() => undefined);
        await this.begin();
    }
  }

  async end(): Promise<void> {
    this.#fate = 'arrives';
    await this.#flusher.flush();
  }

  counted(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.#expected].map(([name, [bytes = 0, connections = 0]]) => [
        name,
        { receivedBytes: bytes, sentBytes: 2 * bytes, connections, requests: 0 },
      ]),
    );
  }

  #count(name: Service, bytes: number): void {
    const { index } = this.#slots.assign(this.#owner(name));
    const row = counterRow(this.#slabs, index);
    row[RECEIVED] = (row[RECEIVED] as number) + bytes;
    row[SENT] = (row[SENT] as number) + 2 * bytes;
    row[CONNECTIONS] = (row[CONNECTIONS] as number) + 1;
    const [before = 0, connections = 0] = this.#expected.get(name) ?? [];
    this.#expected.set(name, [before + bytes, connections + 1]);
  }

  #owner(name: Service): { service: string; tenant: string; namespace: string; name: string } {
    return { service: `uid-${name}`, tenant: this.#tenants[name], namespace: 'n', name };
  }

  #spawn(): void {
    this.#worker += 1;
    this.#slabs = this.#slots.createBlocks();
    this.#slots.addWorker(this.#worker, this.#slabs);
  }
}
