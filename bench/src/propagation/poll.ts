import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, ask } from './ask.ts';
import type { BackendName, Place } from './places.ts';

/** Between two connections: three clients that never rest would take one of two cores from those who work on the change. */
const paceMs = 2;
/** After the first right answer: the old endpoint must not come back. */
const more = 10;
const longestMs = 10_000;

export type Polling = {
  /** Resolves with the first answer. */
  readonly begun: Promise<void>;
  /** All answers, from the first to some after the first from `to`, or of 10 s. */
  readonly answers: Promise<readonly Answer[]>;
};

/** Asks again and again, by a new connection each time. */
export function poll(place: Place, to: BackendName): Polling {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  return { begun, answers: askUntil(place, { to, begin }) };
}

async function askUntil(
  place: Place,
  { to, begin }: { readonly to: BackendName; begin(): void },
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  let after = 0;
  for (;;) {
    const answer = await ask(place);
    answers.push(answer);
    begin();
    if (after > 0 || answer.said === to) after += 1;
    if (after > more || answer.endedAt - (answers[0]?.startedAt ?? 0) > longestMs) return answers;
    await pause(paceMs);
  }
}
