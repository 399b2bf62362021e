import { setTimeout as pause } from 'node:timers/promises';
import { type PollResponse, requestOnce } from './ask.ts';
import type { EndpointName, SocketAddress } from './places.ts';

/** Between two connections: three clients that never rest would take one of two cores from those who work on the change. */
const POLL_INTERVAL_MS = 2;
/** After the first right answer: the old endpoint must not come back. */
const EXTRA_RESPONSES = 10;
const MAX_POLL_MS = 10_000;

export type Poll = {
  /** Resolves with the first answer. */
  readonly firstResponse: Promise<void>;
  /** All answers, from the first to some after the first from `to`, or of 10 s. */
  readonly responses: Promise<readonly PollResponse[]>;
};

/** Asks again and again, by a new connection each time. */
export function poll(place: SocketAddress, to: EndpointName): Poll {
  const { promise: firstResponse, resolve: begin } = Promise.withResolvers<void>();
  return { firstResponse, responses: requestUntil(place, { to, begin }) };
}

async function requestUntil(
  place: SocketAddress,
  { to, begin }: { readonly to: EndpointName; begin(): void },
): Promise<readonly PollResponse[]> {
  const answers: PollResponse[] = [];
  let after = 0;
  for (;;) {
    const answer = await requestOnce(place);
    answers.push(answer);
    begin();
    if (after > 0 || answer.said === to) after += 1;
    if (after > EXTRA_RESPONSES || answer.endedAt - (answers[0]?.startedAt ?? 0) > MAX_POLL_MS) return answers;
    await pause(POLL_INTERVAL_MS);
  }
}
