import { setTimeout as pause } from 'node:timers/promises';
import { changedServices } from './changed-services.ts';
import { evaluateResponses } from './judge.ts';
import { type EndpointName, servicePort } from './places.ts';
import { poll } from './poll.ts';
import type { PropagationReading, PropagationRow } from './propagation-result.ts';
import type { PropagationTotals, ProxyProcesses } from './proxies.ts';
import type { Environment } from './stage.ts';

/** These do not count: Node's compiler is at work on what is new to it. */
export const WARM_UP_CHANGES = 10;
/** So that the loop's gap after the change before is over, as it mostly is in life. */
const PAUSE_BETWEEN_CHANGES_MS = 20;
const MAX_WRONG_EXAMPLES = 5;

export type MeasureChangesOptions = {
  readonly environment: Environment;
  readonly proxies: ProxyProcesses;
  readonly changes: number;
  readonly signal: AbortSignal;
};

/** Moves the endpoints of Services to and fro, one after the other, and looks when each proxy answers by it. */
export async function measureChanges(
  options: MeasureChangesOptions,
): Promise<Pick<PropagationRow, 'changes' | 'wrong' | 'observed'>> {
  const { environment, proxies, changes, signal } = options;
  const changed = changedServices(environment.services);
  const at: EndpointName[] = changed.map(() => 'A');
  const readings: PropagationReading[] = [];
  const wrong = new Set<string>();
  let before: readonly PropagationTotals[] = [];
  for (let round = -WARM_UP_CHANGES; round < changes; round++) {
    signal.throwIfAborted();
    if (round === 0) before = await proxies.propagationTotals();
    const turn = (round + WARM_UP_CHANGES) % changed.length;
    const service = changed[turn] ?? 0;
    const from = at[turn] ?? 'A';
    const to = from === 'A' ? 'B' : 'A';
    const { reading, words } = await measureChange(environment, { service, from, to });
    at[turn] = to;
    for (const text of words) if (wrong.size < MAX_WRONG_EXAMPLES) wrong.add(text);
    if (round >= 0) readings.push(reading);
    await pause(PAUSE_BETWEEN_CHANGES_MS);
  }
  return { changes: readings, wrong: [...wrong], observed: observedBetween(before, await proxies.propagationTotals()) };
}

async function measureChange(
  stage: Environment,
  { service, from, to }: { readonly service: number; readonly from: EndpointName; readonly to: EndpointName },
): Promise<{ readonly reading: PropagationReading; readonly words: readonly string[] }> {
  const pollings = stage.nodes.map(({ address }) => poll({ host: address, port: servicePort(service) }, to));
  await Promise.all(pollings.map(({ firstResponse }) => firstResponse));
  const written = await stage.switchEndpoint(service, to);
  const answers = await Promise.all(pollings.map((each) => each.responses));
  const verdicts = answers.map((list, index) => {
    const verdict = evaluateResponses(list, { from, to, ...written });
    if (verdict !== undefined) return verdict;
    throw new Error(
      `${stage.nodes[index]?.name} does not answer by a change of port ${servicePort(service)}: ${list.at(-1)?.said}`,
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

function observedBetween(
  before: readonly PropagationTotals[],
  after: readonly PropagationTotals[],
): PropagationRow['observed'] {
  const sum = (list: readonly PropagationTotals[], pick: (each: PropagationTotals) => number): number =>
    list.reduce((total, each) => total + pick(each), 0);
  const count = sum(after, (each) => each.count) - sum(before, (each) => each.count);
  const seconds = sum(after, (each) => each.sumSeconds) - sum(before, (each) => each.sumSeconds);
  return { count, meanMs: (seconds / count) * 1_000 };
}
