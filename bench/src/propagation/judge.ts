import type { PollResponse } from './ask.ts';
import type { EndpointName } from './places.ts';

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
