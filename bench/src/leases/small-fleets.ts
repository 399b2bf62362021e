// How precisely a simulated fleet of 1, 3 or 10 proxies keeps one limit of new connections per second.
import { type Absence, type SimulationOptions, simulateFleet } from '../limits/fleet-simulation.ts';
import { markdownTable } from '../report/markdown-table.ts';
import type { LeasesOptions } from './options.ts';

interface Load {
  readonly name: string;
  /** Whether a fleet of one proxy can have this load. */
  readonly isForOne?: boolean;
  /** Returns what the clients offer to `count` proxies. */
  offered(limit: number, count: number): SimulationOptions['offered'];
  /** How often the clients move to another proxy, in seconds. */
  readonly moveSeconds?: number;
  readonly absences?: readonly Omit<Absence, 'proxy'>[];
}

const PERCENT = 0.01;
const even =
  (percent: number): Load['offered'] =>
  (limit, count) =>
  () =>
    (percent * PERCENT * limit) / count;
const onOneProxy =
  (percent: number, moveSeconds = Number.POSITIVE_INFINITY): Load['offered'] =>
  (limit, count) =>
  (index, seconds) =>
    index === Math.floor(seconds / moveSeconds) % count ? percent * PERCENT * limit : 0;

const LOADS: readonly Load[] = [
  { name: '150 % of the limit, evenly', isForOne: true, offered: even(150) },
  { name: '120 % of the limit, evenly', isForOne: true, offered: even(120) },
  { name: '80 % of the limit, evenly', isForOne: true, offered: even(80) },
  {
    name: '120 % at one proxy, up to 30 % at the others',
    offered: (limit, count) => (index) => (index === 0 ? 1.2 * limit : (0.3 * limit * index) / count),
  },
  { name: '200 % at one proxy', offered: onOneProxy(200) },
  { name: '200 % at one proxy, another every 10 s', moveSeconds: 10, offered: onOneProxy(200, 10) },
  { name: '80 % at one proxy, another every 10 s', offered: onOneProxy(80, 10) },
  {
    name: 'each proxy on and off every 5 s',
    offered: (limit, count) => (index, seconds) =>
      (Math.floor(seconds / 5) + index) % 2 === 0 ? (3 * limit) / count : 0,
  },
  {
    name: '150 %, evenly; a proxy drained for 10 s',
    offered: even(150),
    absences: [{ kind: 'drained', atSecond: 15, backAtSecond: 25 }],
  },
  {
    name: '150 %, evenly; a proxy killed, back after 2 s',
    offered: even(150),
    absences: [{ kind: 'killed', atSecond: 15, backAtSecond: 17 }],
  },
  {
    name: '150 %, evenly; a proxy killed for 10 s',
    offered: even(150),
    absences: [{ kind: 'killed', atSecond: 15, backAtSecond: 25 }],
  },
];

const RATES_PER_PROXY = [20, 200] as const;
const FLEETS = [1, 3, 10] as const;
const MAX_REACHED_SECONDS = 3;
const ROUND_TRIP_MS = 10;

/** The figures of one load and fleet; the worst of all rounds. Errors are parts of the limit. */
export type SmallFleetRow = {
  readonly load: string;
  readonly proxies: number;
  readonly ratePerProxy: number;
  readonly lowestError: number;
  readonly highestError: number;
  readonly highestSecond: number;
  readonly reachedAfterSeconds: number | null;
  /** The longest time until a proxy that has started serves clients; null if no proxy starts. */
  readonly servesAfterSeconds: number | null;
  readonly callsPerProxyAndSecond: number;
};

/** Simulates all loads. Throws if shares added up to more than the limit. */
export function simulateSmallFleets({ seconds, rounds }: Pick<LeasesOptions, 'seconds' | 'rounds'>): SmallFleetRow[] {
  return LOADS.flatMap((load) =>
    RATES_PER_PROXY.flatMap((ratePerProxy) =>
      FLEETS.filter((proxies) => proxies > 1 || load.isForOne).map((proxies) =>
        simulateRounds(load, { proxies, ratePerProxy, seconds, rounds }),
      ),
    ),
  );
}

interface FleetSize extends Pick<LeasesOptions, 'seconds' | 'rounds'> {
  readonly proxies: number;
  readonly ratePerProxy: number;
}

function simulateRounds(load: Load, { proxies, ratePerProxy, seconds, rounds }: FleetSize): SmallFleetRow {
  const limit = ratePerProxy * proxies;
  const moves = everySeconds(load.moveSeconds ?? Number.POSITIVE_INFINITY, seconds - 10);
  const results = Array.from({ length: rounds }, (_, round) =>
    simulateFleet({
      ...{ proxies, tenants: 1, proxiesPerTenant: proxies, limit, seconds, moves },
      offered: load.offered(limit, proxies),
      arrivals: 'random',
      roundTripMs: ROUND_TRIP_MS,
      seed: round + 1,
      absences: (load.absences ?? []).map((absence) => ({ ...absence, proxy: proxies - 1 })),
    }),
  );
  const violations = results.reduce((sum, result) => sum + result.violations, 0);
  if (violations > 0)
    throw new Error(`shares added up to more than the limit ${violations} times: ${load.name}, ${proxies} proxies`);
  const starts = results.flatMap(({ servesAfterSeconds }) => servesAfterSeconds ?? []);
  const reached = results.flatMap(({ reachedAfterSeconds }) => reachedAfterSeconds ?? []);
  return {
    load: load.name,
    proxies,
    ratePerProxy,
    lowestError: Math.min(...results.map(({ worstError }) => worstError)),
    highestError: Math.max(...results.map(({ highestError }) => highestError)),
    highestSecond: Math.max(...results.map(({ busiestSecond }) => busiestSecond)),
    reachedAfterSeconds: reached.length === 0 ? null : Math.max(...reached),
    servesAfterSeconds: starts.length === 0 ? null : Math.max(...starts),
    callsPerProxyAndSecond: Math.max(...results.map(({ callsPerSecond }) => callsPerSecond)) / proxies,
  };
}

function everySeconds(interval: number, until: number): number[] {
  const moves: number[] = [];
  for (let at = interval; at <= until; at += interval) moves.push(at);
  return moves;
}

/** Formats the errors, the highest seconds, and the times to the whole limit. */
export function smallFleetTables(rows: readonly SmallFleetRow[]): readonly string[] {
  const errors = tableOf(rows, errorRange);
  const seconds = tableOf(rows, (row) => `${percent(row.highestSecond)}`);
  const moved = rows.filter(({ reachedAfterSeconds }) => reachedAfterSeconds !== null);
  const times = tableOf(moved, (row) => `${(row.reachedAfterSeconds ?? 0).toFixed(1)} s`);
  return [
    'Error of the worst 10 s, below and above, in %:',
    '',
    ...errors,
    '',
    'Highest second, in % of the limit:',
    '',
    ...seconds,
    '',
    `Longest time until the whole limit is used after the clients have moved (target ${MAX_REACHED_SECONDS} s):`,
    '',
    ...times,
  ];
}

function tableOf(rows: readonly SmallFleetRow[], cell: (row: SmallFleetRow) => string): readonly string[] {
  const columns = RATES_PER_PROXY.flatMap((ratePerProxy) => FLEETS.map((proxies) => ({ ratePerProxy, proxies })));
  return markdownTable([
    ['load', ...columns.map(({ ratePerProxy, proxies }) => `${proxies} × ${ratePerProxy}/s`)],
    ...[...Map.groupBy(rows, ({ load }) => load)].map(([load, ofLoad]) => [
      load,
      ...columns.map(({ ratePerProxy, proxies }) => {
        const row = ofLoad.find((each) => each.ratePerProxy === ratePerProxy && each.proxies === proxies);
        return row === undefined ? '–' : cell(row);
      }),
    ]),
  ]);
}

/** Formats the errors below and above. A load below the limit never exceeds the limit. */
export function errorRange({ lowestError, highestError }: Pick<SmallFleetRow, 'lowestError' | 'highestError'>): string {
  return highestError < lowestError ? signed(lowestError) : `${signed(lowestError)} to ${signed(highestError)}`;
}

function signed(part: number): string {
  const rounded = Math.round(100 * part);
  return rounded === 0 ? '0' : rounded > 0 ? `+${rounded}` : `−${-rounded}`;
}

function percent(part: number): string {
  return (100 * part).toFixed(0);
}
