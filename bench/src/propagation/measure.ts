import { setTimeout as pause } from 'node:timers/promises';
import { changedServices } from './changed-services.ts';
import { judge } from './judge.ts';
import { type BackendName, portOf } from './places.ts';
import { poll } from './poll.ts';
import type { ChangeReading, PropagationRow } from './propagation-result.ts';
import type { Propagation, Proxies } from './proxies.ts';
import type { Stage } from './stage.ts';

/** These do not count: Node's compiler is at work on what is new to it. */
export const warmUp = 10;
/** So that the loop's gap after the change before is over, as it mostly is in life. */
const quietMs = 20;
const mostWords = 5;

export type MeasureOptions = {
  readonly stage: Stage;
  readonly proxies: Proxies;
  readonly changes: number;
  readonly signal: AbortSignal;
};

/** Moves the endpoints of Services to and fro, one after the other, and looks when each proxy answers by it. */
export async function measurePropagation(
  options: MeasureOptions,
): Promise<Pick<PropagationRow, 'changes' | 'wrong' | 'observed'>> {
  const { stage, proxies, changes, signal } = options;
  const changed = changedServices(stage.services);
  const at: BackendName[] = changed.map(() => 'A');
  const readings: ChangeReading[] = [];
  const wrong = new Set<string>();
  let before: readonly Propagation[] = [];
  for (let round = -warmUp; round < changes; round++) {
    signal.throwIfAborted();
    if (round === 0) before = await proxies.propagation();
    const turn = (round + warmUp) % changed.length;
    const service = changed[turn] ?? 0;
    const from = at[turn] ?? 'A';
    const to = from === 'A' ? 'B' : 'A';
    const { reading, words } = await measureOne(stage, { service, from, to });
    at[turn] = to;
    for (const text of words) if (wrong.size < mostWords) wrong.add(text);
    if (round >= 0) readings.push(reading);
    await pause(quietMs);
  }
  return { changes: readings, wrong: [...wrong], observed: observedSince(before, await proxies.propagation()) };
}

async function measureOne(
  stage: Stage,
  { service, from, to }: { readonly service: number; readonly from: BackendName; readonly to: BackendName },
): Promise<{ readonly reading: ChangeReading; readonly words: readonly string[] }> {
  const pollings = stage.nodes.map(({ address }) => poll({ host: address, port: portOf(service) }, to));
  await Promise.all(pollings.map(({ begun }) => begun));
  const written = await stage.move(service, to);
  const answers = await Promise.all(pollings.map((each) => each.answers));
  const verdicts = answers.map((list, index) => {
    const verdict = judge(list, { from, to, ...written });
    if (verdict !== undefined) return verdict;
    throw new Error(
      `${stage.nodes[index]?.name} does not answer by a change of port ${portOf(service)}: ${list.at(-1)?.said}`,
    );
  });
  const words = verdicts.flatMap((verdict) => verdict.wrong);
  const reading = {
    ms: verdicts.map(({ ms }) => ms).sort((a, b) => a - b),
    answers: verdicts.reduce((sum, verdict) => sum + verdict.answers, 0),
    wrong: words.length,
  };
  return { reading, words };
}

function observedSince(before: readonly Propagation[], after: readonly Propagation[]): PropagationRow['observed'] {
  const sum = (list: readonly Propagation[], pick: (each: Propagation) => number): number =>
    list.reduce((total, each) => total + pick(each), 0);
  const count = sum(after, (each) => each.count) - sum(before, (each) => each.count);
  const seconds = sum(after, (each) => each.sumSeconds) - sum(before, (each) => each.sumSeconds);
  return { count, meanMs: (seconds / count) * 1_000 };
}
