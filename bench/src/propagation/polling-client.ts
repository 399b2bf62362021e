import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import type { EndpointName, SocketAddress } from './topology.ts';

/** What one new connection was told; times of the machine's monotonic clock. */
export type PollResponse = {
  readonly startedAt: number;
  readonly endedAt: number;
  /** The name of the backend; anything else is an error in words. */
  readonly said: string;
};

const RESPONSE_TIMEOUT_MS = 2_000;

export function requestOnce(place: SocketAddress): Promise<PollResponse> {
  const { promise, resolve } = Promise.withResolvers<PollResponse>();
  const startedAt = monotonicMs();
  const told = (said: string): void => {
    socket.destroy();
    resolve({ startedAt, endedAt: monotonicMs(), said });
  };
  let said = '';
  const socket = connect(place);
  socket.setTimeout(RESPONSE_TIMEOUT_MS);
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    said += text;
  });
  socket.once('end', () => told(said === '' ? 'closed without an answer' : said));
  socket.once('timeout', () => told(`no answer for ${RESPONSE_TIMEOUT_MS} ms`));
  socket.once('error', (error: NodeJS.ErrnoException) => told(error.code ?? error.message));
  return promise;
}

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

/** The endpoint is moved: from when to when the write was on its way. */
export type EndpointChange = {
  readonly from: EndpointName;
  readonly to: EndpointName;
  readonly beganAt: number;
  /** The source has it. */
  readonly writtenAt: number;
};

export type PollEvaluation = {
  /** From the write to the first right answer of this proxy. */
  readonly ms: number;
  readonly answers: number;
  /** Of these, in words: neither the old nor the new endpoint, the old one after the new one, the new one before the write. */
  readonly wrong: readonly string[];
};

/** The answers of one proxy, each asked for after the one before was there. Undefined: none was right. */
export function evaluateResponses(
  answers: readonly PollResponse[],
  { from, to, beganAt, writtenAt }: EndpointChange,
): PollEvaluation | undefined {
  const first = answers.find(({ said }) => said === to);
  if (first === undefined) return undefined;
  const wrong = answers.flatMap((answer) => {
    const { said, startedAt, endedAt } = answer;
    if (said === to) return endedAt < beganAt ? [`${to} before the write`] : [];
    if (said !== from) return [said];
    return startedAt > first.endedAt ? [`${from} ${(startedAt - first.endedAt).toFixed(1)} ms after ${to}`] : [];
  });
  // An API server may have told the controller before it answers whoever wrote.
  return { ms: Math.max(0, first.endedAt - writtenAt), answers: answers.length, wrong };
}
