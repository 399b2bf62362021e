import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { saveOrExplain } from '../report/save-result.ts';
import {
  type HostileReading,
  type HostileResult,
  type HostileRow,
  hostileTable,
  meetsTarget,
  type P99Target,
  summarizeHostile,
} from './hostile-result.ts';
import { measureScenario } from './measure-scenario.ts';
import { HOSTILE_DEFAULTS, HOSTILE_SCENARIO_NAMES, type HostileOptions } from './options.ts';
import { HOSTILE_SCENARIOS, type HostileScenario } from './scenarios.ts';

/** Returns the exit code: 1 if a scenario misses its target. */
export async function benchmarkHostile(options: HostileOptions, signal: AbortSignal): Promise<number> {
  const { rounds, seconds, scenarios = HOSTILE_SCENARIO_NAMES } = options;
  const endRun = startRun({});
  const rows: HostileRow[] = [];
  for (const name of scenarios) {
    const scenario = HOSTILE_SCENARIOS[name];
    const onReading = (reading: HostileReading, round: number): void =>
      logProgress(`${name}: round ${round} of ${rounds}: ${formatReading(reading)}`);
    const readings = await measureScenario(scenario, { rounds, seconds, signal, onReading });
    rows.push(summarizeHostile(name, { readings, target: targetOf(scenario) }));
  }
  const result: HostileResult = { ...endRun(), rounds, seconds, rows };
  console.log(`${formatHeadline(result, `${rounds} rounds of ${seconds} s`)}\n`);
  console.log(
    [...hostileTable(rows), '', ...rows.map(({ scenario, accepted }) => `${scenario}: ${accepted}`)].join('\n'),
  );
  saveOrExplain('hostile', result, { reasonToDiscard: reasonToDiscard(options) });
  return rows.every(meetsTarget) ? 0 : 1;
}

function targetOf(scenario: HostileScenario): P99Target {
  return 'maxP99Ratio' in scenario ? { maxP99Ratio: scenario.maxP99Ratio } : { maxP99RiseMs: scenario.maxP99RiseMs };
}

function formatReading({ quiet, attacked, workerEnds, accepted }: HostileReading): string {
  return `p99 ${quiet.p99.toFixed(1)} → ${attacked.p99.toFixed(1)} ms, ${workerEnds} worker ends, ${accepted}`;
}

function reasonToDiscard({ rounds, scenarios }: HostileOptions): string | undefined {
  if (scenarios !== undefined) return 'a result needs all scenarios';
  return rounds < HOSTILE_DEFAULTS.rounds ? `a result needs ${HOSTILE_DEFAULTS.rounds} rounds or more` : undefined;
}
