// Tests that the ledger ends with exactly the counted usage, whatever happens to reports, workers and processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countersFrom } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore, type Store } from '@weir/store';
import { temporaryDirectory } from '@weir/testkit';
import fc from 'fast-check';
import {
  addToCounter,
  CODE_CLASS_COLUMNS,
  CONNECTIONS,
  counterRow,
  RECEIVED,
  SENT,
} from '../../src/metering/counters.ts';
import { SlotRegistry } from '../../src/metering/slot-registry.ts';
import { UsageFlusher } from '../../src/metering/usage-flusher.ts';
import { openStateDirectory } from '../../src/supervisor/state-directory.ts';
import { faultyStore, type ReportFate } from '../fixtures/faulty-store.ts';
import { usageByService } from '../fixtures/fleet.ts';

/** The middle of a month, so that all usage is counted in the same month. */
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
  | { readonly kind: 'days'; readonly days: number }
  | { readonly kind: 'worker dies' }
  | { readonly kind: 'crash' };

const service = fc.constantFrom(...SERVICES);
const fate = fc.constantFrom<ReportFate>('arrives', 'lost', 'unanswered', 'repeated', 'overtaken');
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('count' as const), service, bytes: fc.nat(100_000) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('flush' as const), fate }) },
  fc.record({ kind: fc.constant('move' as const), service, tenant: fc.constantFrom(...TENANTS) }),
  fc.record({ kind: fc.constantFrom('free' as const, 'minute' as const, 'worker dies' as const, 'crash' as const) }),
);

/** The values of `maxFormerOwners`: a limit that is never reached, and 0, which makes incarnations end early. */
for (const maxFormerOwners of [TENANTS.length * SERVICES.length, 0]) {
  test(`the ledger equals the counted usage with reports lost, repeated or reordered, and at most ${maxFormerOwners} former owners remembered`, async () => {
    await assertLedgerMatches(maxFormerOwners);
  });
}

test('counts the usage of two incarnations that crashed at the same time of the clock without a number', async () => {
  await using directory = temporaryDirectory('ledger');
  const scenario = new LedgerScenario(directory.path, 0);
  await scenario.begin();
  const count: Step = { kind: 'count', service: 'web', bytes: 1 };
  for (const each of [count, { kind: 'crash' }, count, { kind: 'crash' }] as const) await scenario.apply(each);
  await scenario.end();
  assert.deepEqual(await usageByService(scenario.store, START), scenario.counted());
});

test('counts a Service in a new incarnation when it returns to a tenant whose total was dropped', async () => {
  await using directory = temporaryDirectory('ledger');
  const scenario = new LedgerScenario(directory.path, 0);
  await scenario.begin();
  const move = (tenant: Tenant): Step => ({ kind: 'move', service: 'web', tenant });
  const count = (bytes: number): Step => ({ kind: 'count', service: 'web', bytes });
  const settle: readonly Step[] = [{ kind: 'flush', fate: 'arrives' }, { kind: 'free' }];
  for (const each of [count(1_000), move('y'), ...settle, ...settle, move('x'), count(10)]) await scenario.apply(each);
  await scenario.end();
  assert.deepEqual(await usageByService(scenario.store, START), scenario.counted());
  assert.equal(scenario.incarnations, 2);
});

test('starts a new incarnation six days after the first Service left, so that the ledger can drop its base', async () => {
  await using directory = temporaryDirectory('ledger');
  const scenario = new LedgerScenario(directory.path, Number.POSITIVE_INFINITY);
  await scenario.begin();
  const steps: readonly Step[] = [
    { kind: 'count', service: 'web', bytes: 1_000 },
    { kind: 'move', service: 'web', tenant: 'y' },
    { kind: 'flush', fate: 'arrives' },
    { kind: 'free' },
    { kind: 'days', days: 6 },
    { kind: 'move', service: 'web', tenant: 'x' },
    { kind: 'count', service: 'web', bytes: 10 },
  ];
  for (const each of steps) await scenario.apply(each);
  assert.equal(scenario.incarnations, 1);
  await scenario.end();
  assert.equal(scenario.incarnations, 2);
  assert.deepEqual(await usageByService(scenario.store, START), scenario.counted());
});

async function assertLedgerMatches(maxFormerOwners: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(stepArbitrary, { maxLength: 40 }), async (steps) => {
      await using directory = temporaryDirectory('ledger');
      const scenario = new LedgerScenario(directory.path, maxFormerOwners);
      await scenario.begin();
      for (const each of steps) await scenario.apply(each);
      await scenario.end();
      assert.deepEqual(await usageByService(scenario.store, START), scenario.counted());
    }),
    { numRuns: 60 },
  );
}

/** Runs the usage reporting of a proxy without workers. The test writes the counters that the workers would write. */
class LedgerScenario {
  readonly store: Store = new MemoryStore();
  readonly #directory: string;
  readonly #clock = new ManualClock(START);
  readonly #expected = new Map<Service, number[]>();
  readonly #tenants: Record<Service, Tenant> = { web: 'x', game: 'x' };
  readonly #maxFormerOwners: number;
  #slots = new SlotRegistry();
  /** How many incarnations have begun. */
  incarnations = 0;
  #flusher!: UsageFlusher;
  #fate: ReportFate = 'arrives';
  #worker = 0;
  #blocks: SharedArrayBuffer[] = [];
  #mark = 0;

  constructor(directory: string, maxFormerOwners: number) {
    this.#directory = directory;
    this.#maxFormerOwners = maxFormerOwners;
  }

  async begin(): Promise<void> {
    if (!(await this.store.usage.isSeeded())) await this.store.usage.seed({ months: [], bases: [] });
    const store = faultyStore(this.store, () => this.#fate);
    const common = { node: 'a', store, clock: this.#clock, log: silentLogger() };
    const state = await openStateDirectory({ ...common, path: this.#directory });
    this.#slots = new SlotRegistry({ maxFormerOwners: this.#maxFormerOwners });
    this.#flusher = new UsageFlusher({
      ...common,
      slots: this.#slots,
      highestIncarnation: state.highestIncarnation,
      state,
      onIncarnation: () => {
        this.incarnations += 1;
      },
    });
    this.#spawn();
  }

  async apply(step: Step): Promise<void> {
    switch (step.kind) {
      case 'count':
        return this.#count(step.service, step.bytes);
      case 'move': {
        this.#slots.release(this.#owner(step.service), this.#mark);
        this.#tenants[step.service] = step.tenant;
        this.#slots.assign(this.#owner(step.service));
        return;
      }
      case 'flush':
        this.#fate = step.fate;
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
      case 'days':
        await this.#clock.advance(step.days * 86_400_000);
        return;
      case 'worker dies':
        this.#slots.removeWorker(this.#worker);
        this.#spawn();
        return;
      case 'crash':
        // A SIGKILL loses the usage since the last write of the journal.
        await this.#flusher.writeJournal();
        await this.begin();
    }
  }

  async end(): Promise<void> {
    this.#fate = 'arrives';
    await this.#flusher.flush();
  }

  counted(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.#expected].map(([name, [bytes = 0, connections = 0, ...codeClasses]]) => [
        name,
        countersFrom([bytes, 2 * bytes, connections, connections, ...codeClasses]),
      ]),
    );
  }

  #count(name: Service, bytes: number): void {
    const { index } = this.#slots.assign(this.#owner(name));
    const row = counterRow(this.#blocks, index);
    row[RECEIVED] = (row[RECEIVED] as number) + bytes;
    row[SENT] = (row[SENT] as number) + 2 * bytes;
    row[CONNECTIONS] = (row[CONNECTIONS] as number) + 1;
    const codeClass = bytes % CODE_CLASS_COLUMNS.length;
    addToCounter(row, CODE_CLASS_COLUMNS[codeClass] as number, 1);
    const [before = 0, connections = 0, ...codeClasses] = this.#expected.get(name) ?? [0, 0, 0, 0, 0, 0, 0];
    codeClasses[codeClass] = (codeClasses[codeClass] ?? 0) + 1;
    this.#expected.set(name, [before + bytes, connections + 1, ...codeClasses]);
  }

  #owner(name: Service): { service: string; tenant: string; namespace: string; name: string } {
    return { service: `uid-${name}`, tenant: this.#tenants[name], namespace: 'n', name };
  }

  #spawn(): void {
    this.#worker += 1;
    this.#blocks = this.#slots.createBlocks();
    this.#slots.addWorker(this.#worker, this.#blocks);
  }
}
