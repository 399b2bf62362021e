import { provideRedis } from '../provide-programs.ts';
import { markdownTable } from '../report/markdown-table.ts';
import { formatHeadline, logProgress, type RunMetadata, startRun } from '../report/run-metadata.ts';
import { saveOrExplain } from '../report/save-result.ts';
import {
  LARGE_FLEET_LOADS,
  type LargeFleetLoad,
  type LargeFleetRow,
  PROXIES_PER_TENANT,
  simulateLargeFleet,
} from './large-fleet.ts';
import { LEASES_DEFAULTS, type LeasesOptions } from './options.ts';
import { errorRange, type SmallFleetRow, simulateSmallFleets, smallFleetTables } from './small-fleets.ts';

export type LeasesResult = RunMetadata & {
  readonly proxies: number;
  readonly tenants: number;
  readonly smallFleets: readonly SmallFleetRow[];
  readonly largeFleet: readonly LargeFleetRow[];
};

export async function benchmarkLeases(options: LeasesOptions, signal: AbortSignal): Promise<number> {
  const { proxies, tenants, seconds, rounds } = options;
  const endRun = startRun({ redis: await provideRedis() });
  logProgress('small fleets');
  const smallFleets = simulateSmallFleets(options);
  const largeFleet: LargeFleetRow[] = [];
  for (const load of Object.keys(LARGE_FLEET_LOADS) as LargeFleetLoad[]) {
    if (signal.aborted) break;
    logProgress(`${proxies} proxies, ${tenants} tenants: ${LARGE_FLEET_LOADS[load]}`);
    largeFleet.push(await simulateLargeFleet(load, options));
  }
  const result: LeasesResult = { ...endRun(), proxies, tenants, smallFleets, largeFleet };
  console.log(`${formatHeadline(result, `${rounds} rounds of ${seconds} s`)}\n`);
  console.log(smallFleetTables(smallFleets).join('\n'));
  const start = Math.max(...smallFleets.map(({ servesAfterSeconds }) => servesAfterSeconds ?? 0));
  console.log('\nShares never added up to more than what the proxies may admit in a second.');
  console.log(`A proxy that started had its first shares after at most ${start.toFixed(2)} s.\n`);
  console.log(
    `${proxies} proxies and ${tenants} tenants with one limit each, on ${PROXIES_PER_TENANT} proxies each:\n`,
  );
  console.log(largeFleetTable(largeFleet, options).join('\n'));
  const isDefault = Object.entries(LEASES_DEFAULTS).every(
    ([name, value]) => options[name as keyof LeasesOptions] === value,
  );
  const isComplete = isDefault && !signal.aborted;
  saveOrExplain('leases', result, { reasonToDiscard: isComplete ? undefined : 'a result needs the default sizes' });
  return 0;
}

export function largeFleetTable(
  rows: readonly LargeFleetRow[],
  { proxies, tenants }: Pick<LeasesOptions, 'proxies' | 'tenants'>,
): readonly string[] {
  const line = (name: string, cell: (row: LargeFleetRow) => string): string[] => [name, ...rows.map(cell)];
  return markdownTable([
    ['per second', ...rows.map(({ load }) => load)],
    line('calls (EVALSHA)', (row) => amount(row.callsPerSecond)),
    line('calls per proxy', (row) => amount(row.callsPerSecond / proxies)),
    line('calls per tenant', (row) => amount(row.callsPerSecond / tenants)),
    line('leases in these calls', (row) => amount(row.leasesPerSecond)),
    line('exchanges per lease', (row) => amount(row.leasesPerSecond / (tenants * PROXIES_PER_TENANT))),
    line('commands in Redis, with those of the script', (row) => amount(row.redisCommands)),
    line('processor time of Redis', (row) => `${(1_000 * row.redisProcessorSeconds).toFixed(0)} ms`),
    line('bytes to Redis', (row) => megabytes(row.receivedBytes)),
    line('bytes from Redis', (row) => megabytes(row.sentBytes)),
    line('memory of all leases in Redis', (row) => megabytes(row.memoryBytes)),
    line('memory of the simulation', (row) => megabytes(row.simulationBytes)),
    line('error of the worst 10 s', (row) => `${errorRange(row)} %`),
    line('highest second', (row) => `${(100 * row.highestSecond).toFixed(0)} %`),
  ]);
}

function amount(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(value >= 10 ? 0 : 1);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
