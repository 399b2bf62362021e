import { REFUSAL_STATUS, type RequestRefusal } from './h1/refusals.ts';
import type { MessageRefusal } from './message-reader.ts';
import type { ErrorReason } from './passes/error-answer.ts';

const REASON_BY_STATUS: Readonly<Record<(typeof REFUSAL_STATUS)[RequestRefusal], ErrorReason>> = {
  400: 'invalid-request',
  414: 'target-too-long',
  431: 'head-too-large',
  501: 'not-implemented',
  505: 'unsupported-version',
};

/** Returns the reason of the answer to a request that is not valid. */
export function reasonForRefusal(refusal: MessageRefusal): ErrorReason {
  return refusal in REFUSAL_STATUS ? REASON_BY_STATUS[REFUSAL_STATUS[refusal as RequestRefusal]] : 'invalid-request';
}
