import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  addCounters,
  CODE_CLASSES,
  type Counters,
  countersFrom,
  minuteOf,
  otherServicesUid,
  periodsOf,
  type RefusalCounts,
  SERIES_LENGTHS,
  type SeriesLength,
  type SlotReport,
  type UsageReport,
  ZERO_COUNTERS,
} from '@weir/model';
import fc from 'fast-check';
import type { Store, UsageSeed } from '../../src/contract.ts';
import type { PeriodLength } from '../../src/usage-periods.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const START = minuteOf(Date.now()) - 60;
const SLOTS = ['u1/shop', 'u2/shop', 'u2/game'] as const;
const NODES = ['n1', 'n2'] as const;

/**
 * Checks that the ledger equals the relayed bytes although reports are lost, repeated or reordered, proxies restart, ended incarnations and
 * Services that are gone are folded, and the store is rolled back, or wiped and seeded from an old export, in which several Services may
 * share a row and a base. The series equal the relayed bytes as well, unless the store lost data.
 */
export function usageProperties(subject: StoreUnderTest, { numRuns }: { readonly numRuns: number }): void {
  describe(`properties of the ledger of ${subject.name}`, () => {
    test('the ledger equals the relayed usage', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(event(), { maxLength: 80, size: 'max' }), async (events) => {
          await using world = await subject.open();
          const store = await world.connect();
          const fleet = new Fleet(store);
          await store.usage.seed({ months: [], bases: [] });
          let exported = await store.usage.exportSeed(fleet.months());
          let rollBack = await world.checkpoint();
          let wasLost = false;
          let areRowsShared = false;
          for (const each of events) {
            const proxy = fleet.proxies[each.proxy % NODES.length];
            assert.ok(proxy !== undefined);
            if (each.kind === 'relay') fleet.relay(proxy, each);
            if (each.kind === 'minute') fleet.minute += 1;
            if (each.kind === 'flush') await fleet.flush(proxy, each.fate);
            if (each.kind === 'late') await fleet.deliverLate(each.size);
            if (each.kind === 'restart') fleet.restart(proxy);
            if (each.kind === 'fold') await fleet.fold(proxy);
            if (each.kind === 'copy') exported = await store.usage.exportSeed(fleet.months());
            if (each.kind === 'small copy') {
              exported = withSharedRows(await store.usage.exportSeed(fleet.months()), each.slot);
              areRowsShared = true;
            }
            if (each.kind === 'fold services') {
              for (const days of [0, 7]) {
                await store.usage.foldGoneServices(new Set([each.slot]), START * 60_000 + days * 86_400_000);
              }
              areRowsShared = true;
            }
            if (each.kind === 'checkpoint') rollBack = await world.checkpoint();
            if (each.kind === 'wipe') {
              await world.wipe();
              assert.equal(await store.usage.isSeeded(), false);
              await fleet.flush(proxy, 'delivered');
              await store.usage.seed(exported);
            }
            if (each.kind === 'roll-back') await rollBack();
            if (each.kind === 'wipe' || each.kind === 'roll-back') {
              wasLost = true;
              // Folds all ended incarnations again, as the controller does, because the store may have lost the previous fold.
              await fleet.foldAgain();
              exported = await store.usage.exportSeed(fleet.months());
              rollBack = await world.checkpoint();
            }
          }
          await fleet.reportAll();
          const sum = areRowsShared ? byTenant : (usage: Usage): Usage => usage;
          assert.deepEqual(sum(await fleet.total('month')), sum(fleet.relayed));
          if (!wasLost) {
            for (const length of SERIES_LENGTHS) {
              assert.deepEqual(sum(await fleet.total(length)), sum(fleet.relayed), length);
              assert.deepEqual(await fleet.tenantTotal(length), byTenant(fleet.relayed), length);
            }
          }
        }),
        { numRuns },
      );
    });
  });
}

/** Usage by `<service>/<tenant>`, or by tenant. */
type Usage = Readonly<Record<string, Counters>>;

function byTenant(usage: Usage): Usage {
  const sums: Record<string, Counters> = {};
  for (const [slot, counters] of Object.entries(usage)) {
    const tenant = slot.slice(slot.indexOf('/') + 1);
    sums[tenant] = addCounters(sums[tenant] ?? ZERO_COUNTERS, counters);
  }
  return sums;
}

/** Returns the seed with one row and one base of other Services instead of those of all Services but one. */
function withSharedRows({ months, bases, folded = [] }: UsageSeed, keptSlot: string): UsageSeed {
  const service = otherServicesUid('ns');
  const isKept = (each: { service: string; tenant: string }): boolean => `${each.service}/${each.tenant}` === keptSlot;
  const share = <T extends { service: string; tenant: string; counters: Counters; node?: string; life?: number }>(
    all: readonly T[],
  ): T[] => {
    const shared = new Map<string, T>();
    for (const each of all.filter((one) => !isKept(one))) {
      const key = `${each.tenant}/${each.life}/${each.node}`;
      const sum = addCounters(shared.get(key)?.counters ?? ZERO_COUNTERS, each.counters);
      shared.set(key, { ...each, service, counters: sum });
    }
    return [...all.filter(isKept), ...shared.values()];
  };
  return { months: months.map(({ month, rows }) => ({ month, rows: share(rows) })), bases: share(bases), folded };
}

type Fate = 'delivered' | 'lost' | 'unanswered' | 'repeated' | 'late';

interface Life {
  readonly node: string;
  readonly life: number;
  readonly slots: Map<string, { counters: Counters; points: SlotReport['points'] }>;
}

interface Proxy {
  readonly node: string;
  current: Life;
}

/** Proxies that report usage, and the usage that the proxies have really relayed. */
class Fleet {
  readonly #store: Store;
  readonly proxies: readonly Proxy[];
  readonly relayed: Record<string, Counters> = {};
  minute = START;
  #over: Life[] = [];
  readonly #folded: Life[] = [];
  readonly #late: UsageReport[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.proxies = NODES.map((node) => ({ node, current: { node, life: 1, slots: new Map() } }));
  }

  relay({ current }: Proxy, { slot, size }: { slot: string; size: number }): void {
    // A third of the requests are those of a version that does not count by code class.
    const codeClasses = CODE_CLASSES.map((_, index) => Number(size % 3 > 0 && size % CODE_CLASSES.length === index));
    const more = countersFrom([size, 3 * size, 1, 1, ...codeClasses], refusalsFor(size));
    const old = current.slots.get(slot) ?? { counters: ZERO_COUNTERS, points: [] };
    const counters = addCounters(old.counters, more);
    const points = [...old.points.filter((point) => point.minute !== this.minute), { minute: this.minute, counters }];
    current.slots.set(slot, { counters, points });
    this.relayed[slot] = addCounters(this.relayed[slot] ?? ZERO_COUNTERS, more);
  }

  async flush({ current }: Proxy, fate: Fate): Promise<void> {
    const report = reportOf(current, (points) => points);
    if (fate === 'lost') return;
    if (fate === 'late') {
      this.#late.push(report);
      return;
    }
    const { kind } = await this.#store.usage.flush(report);
    if (fate === 'repeated') await this.#store.usage.flush(report);
    // With the fate `unanswered`, the store accepts the report but the proxy gets no response.
    if (fate === 'unanswered' || kind !== 'accepted') return;
    for (const slot of current.slots.values()) slot.points = [];
  }

  async deliverLate(size: number): Promise<void> {
    const [report] = this.#late.splice(size % (this.#late.length || 1), 1);
    if (report !== undefined) await this.#store.usage.flush(report);
  }

  restart(proxy: Proxy): void {
    this.#over.push(proxy.current);
    proxy.current = { node: proxy.node, life: proxy.current.life + 1, slots: new Map() };
  }

  /** Repeats the last report of each ended incarnation of the node, and then folds these incarnations. */
  async fold(proxy: Proxy): Promise<void> {
    const over = this.#over.filter(({ node }) => node === proxy.node);
    for (const life of over) await this.#store.usage.flush(reportOf(life, present));
    await this.#store.usage.fold(proxy.node, proxy.current.life - 1);
    this.#over = this.#over.filter(({ node }) => node !== proxy.node);
    this.#folded.push(...over);
  }

  async foldAgain(): Promise<void> {
    for (const life of this.#folded) {
      const { kind } = await this.#store.usage.flush(reportOf(life, present));
      if (kind === 'accepted') await this.#store.usage.fold(life.node, life.life);
    }
  }

  /** Delivers all late reports and reports the current values of all slots, as proxies do after a reconnection. */
  async reportAll(): Promise<void> {
    for (const report of this.#late) await this.#store.usage.flush(report);
    for (const life of [...this.#over, ...this.proxies.map(({ current }) => current)]) {
      await this.#store.usage.flush(reportOf(life, present));
    }
  }

  months(): string[] {
    return [...new Set([START, this.minute].map((minute) => periodsOf(minute).month))];
  }

  /** Returns the sum of the series of each tenant. */
  async tenantTotal(length: SeriesLength): Promise<Usage> {
    const found: Record<string, Counters> = {};
    for (const tenant of Object.keys(byTenant(this.relayed))) {
      const points = await this.#store.usage.series({ tenant, length, from: START - 1_440, until: this.minute + 1 });
      found[tenant] = points.reduce((total, { counters }) => addCounters(total, counters), ZERO_COUNTERS);
    }
    return found;
  }

  async total(length: PeriodLength): Promise<Record<string, Counters>> {
    const found: Record<string, Counters> = {};
    const tenants = new Set(SLOTS.map((slot) => slot.slice(slot.indexOf('/') + 1)));
    for (const tenant of tenants) {
      for (const period of await this.#store.usage.periods(tenant, length)) {
        for (const row of await this.#store.usage.rows(period, tenant)) {
          const slot = `${row.service}/${row.tenant}`;
          found[slot] = addCounters(found[slot] ?? ZERO_COUNTERS, row.counters);
        }
      }
    }
    return found;
  }
}

/** Returns refusals for none, one or two reasons. Reasons may have the names of properties that every object has. */
function refusalsFor(size: number): RefusalCounts | undefined {
  const reasons = ['rate-limit', 'constructor'].filter((_, index) => (size >> index) % 2 === 1);
  return reasons.length === 0 ? undefined : Object.fromEntries(reasons.map((reason) => [reason, (size % 5) + 1]));
}

type Points = SlotReport['points'];

function reportOf({ node, life, slots }: Life, choose: (points: Points, counters: Counters) => Points): UsageReport {
  return {
    node,
    life,
    slots: [...slots].map(([slot, { counters, points }]) => {
      const [service = '', tenant = ''] = slot.split('/');
      return { service, tenant, namespace: 'ns', name: service, points: choose(points, counters) };
    }),
  };
}

function present(points: Points, counters: Counters): Points {
  const minute = points.at(-1)?.minute ?? START;
  return [...points.slice(0, -1), { minute, counters }];
}

interface Event {
  readonly kind: keyof typeof WEIGHTS;
  readonly proxy: number;
  readonly slot: string;
  readonly size: number;
  readonly fate: Fate;
}

const WEIGHTS = {
  relay: 12,
  flush: 10,
  minute: 3,
  late: 3,
  restart: 2,
  fold: 1,
  copy: 1,
  'small copy': 1,
  'fold services': 1,
  checkpoint: 1,
  wipe: 1,
  'roll-back': 1,
} as const;

function event(): fc.Arbitrary<Event> {
  const kinds = Object.entries(WEIGHTS).flatMap(([kind, weight]) =>
    Array<keyof typeof WEIGHTS>(weight).fill(kind as never),
  );
  return fc.record({
    kind: fc.constantFrom(...kinds),
    proxy: fc.nat(10),
    slot: fc.constantFrom(...SLOTS),
    size: fc.oneof(fc.nat(1_000), fc.constant(2 ** 45 + 1)),
    fate: fc.constantFrom<Fate>('delivered', 'delivered', 'lost', 'unanswered', 'repeated', 'late'),
  });
}
