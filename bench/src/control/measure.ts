import { setTimeout as pause } from 'node:timers/promises';
import { median } from '../measure/statistics.ts';
import { judgedFollowers } from './bars.ts';
import { Answering } from './calls.ts';
import type { ControlCalls, Started } from './control-process.ts';
import type { ChangeReading, ChangeRow, StartRow } from './control-result.ts';
import { Crew } from './crew.ts';
import type { ChangeScenario } from './scenario-name.ts';

export type Measured = {
  readonly start: StartRow;
  readonly changes: readonly ChangeRow[];
  /** What ended it before its time, in words. */
  readonly failure?: string;
};

export type MeasureOptions = {
  readonly url: string;
  readonly services: number;
  readonly followers: number;
  readonly rounds: number;
  readonly starts: number;
  readonly scenarios: readonly ChangeScenario[];
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
};

const program = new URL('control-process.ts', import.meta.url);
/** So that the loop's gap after the change before is over, as it mostly is in life. */
const quietMs = 20;

type Stage = { readonly controller: Answering<ControlCalls>; readonly crew: Crew; readonly options: MeasureOptions };

/**
 * One size of the cluster: starts, each in a fleet of its own, and in the last of them the changes. Throws when it does not start;
 * what fails later leaves what was measured before.
 */
export async function measure(options: MeasureOptions): Promise<Measured> {
  const { url, services, starts, signal, say } = options;
  const controllers: Started[] = [];
  for (let nth = 1; nth < starts; nth++) {
    signal.throwIfAborted();
    await using passing = startProcess(options, nth);
    controllers.push(await passing.call('start'));
  }
  await using controller = startProcess(options, starts);
  controllers.push(await controller.call('start'));
  say(`${services} Services: the controller started in ${controllers.map(({ ms }) => ms.toFixed(0)).join(', ')} ms`);
  await using crew = new Crew(url, fleetOf(services, starts));
  const [followerMs = Number.NaN] = await crew.growTo(1);
  const start = { services, controllers, followerMs, followerBytes: await crew.received() };
  const changes: ChangeRow[] = [];
  try {
    await measureChanges({ controller, crew, options }, changes);
    return { start: { ...start, afterKiB: await controller.call('residentKiB') }, changes };
  } catch (error) {
    return {
      start,
      changes,
      failure: `${services} Services: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** Into `changes`, also those of a crew that is not proved in the end. */
async function measureChanges(stage: Stage, changes: ChangeRow[]): Promise<void> {
  const { controller, crew, options } = stage;
  const { services, followers, rounds, scenarios, say } = options;
  // rounds go on counting, so that no change says what is said already
  let round = 0;
  for (const size of new Set(scenarios.length > 0 ? [Math.min(judgedFollowers, followers), followers] : [])) {
    if (size > crew.size) await crew.growTo(size);
    const first = changes.length;
    for (const scenario of scenarios) {
      const readings = await measureScenario(scenario, stage, round);
      round += rounds;
      changes.push({ services, followers: size, scenario, changes: readings, isProved: false });
      const all = median(readings.map(({ allMs }) => allMs));
      say(`${services} Services, ${size} followers, ${scenario}: all have it after ${all.toFixed(1)} ms (median)`);
    }
    await crew.prove(await controller.call('digest'));
    changes.splice(first, changes.length, ...changes.slice(first).map((row) => ({ ...row, isProved: true })));
  }
}

async function measureScenario(
  scenario: ChangeScenario,
  { controller, crew, options }: Stage,
  first: number,
): Promise<ChangeReading[]> {
  const readings: ChangeReading[] = [];
  for (let round = first; readings.length < options.rounds; round++) {
    options.signal.throwIfAborted();
    await pause(quietMs);
    const before = await crew.received();
    const made = await controller.call('change', scenario, round);
    const applied: (readonly number[])[] = [];
    for (const { revision } of made) applied.push(await crew.applied(revision));
    const receivedBytes = ((await crew.received()) - before) / crew.size / made.length;
    made.forEach(({ at, bytes }, index) => {
      const times = (applied[index] ?? []).map((time) => time - at);
      readings.push({ halfMs: median(times), allMs: Math.max(...times), sentBytes: bytes, receivedBytes });
    });
  }
  return readings;
}

function startProcess({ url, services }: MeasureOptions, nth: number): Answering<ControlCalls> {
  return new Answering<ControlCalls>(program, [url, fleetOf(services, nth), services]);
}

function fleetOf(services: number, nth: number): string {
  return `bench-${services}-${nth}`;
}
