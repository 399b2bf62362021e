// Routes the first request of a connection on a listener that Services share.
import { METHOD } from '../http/h1/methods.ts';
import type { RequestHeadRefusal } from '../http/h1/refusals.ts';
import { writeAnswer } from '../http/heads.ts';
import { answerFormatFor } from '../http/passes/answer-format.ts';
import type { ErrorReason } from '../http/passes/error-answer.ts';
import type { RequestHead } from '../http/passes/request-context.ts';
import { reasonForRefusal } from '../http/refusal-reason.ts';
import type { RequestRouter } from '../http/request-router.ts';
import { output } from '../http/worker-memory.ts';
import type { Admission, AdmissionRefusal } from '../limits/admission.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { RoutingDecision } from './pending-connection.ts';
import { admitRequest, reasonForOutcome } from './refuse.ts';

export interface FirstRequestRouting {
  readonly router: RequestRouter;
  /** Admits one more connection of this Service, or returns why it is refused. */
  admit(uid: string): Admission | AdmissionRefusal;
}

/**
 * Decides about a client that has sent a request without TLS. `head` is a refusal if the head is not valid. If the
 * client is admitted, the decision contains its upstream.
 */
export function routeFirstRequest(
  head: RequestHead | RequestHeadRefusal,
  { client }: Pick<DownstreamInfo, 'client'>,
  { router, admit }: FirstRequestRouting,
): RoutingDecision & { readonly upstream?: Upstream } {
  if (typeof head === 'string') return refused('bad-request', answerTo(undefined, reasonForRefusal(head)));
  const routed = router.route(head, undefined);
  if (typeof routed === 'string') {
    return refused(OUTCOMES[routed] ?? 'bad-request', answerTo(head, routed));
  }
  const { upstream } = routed;
  const { service } = upstream;
  const admission = admitRequest(upstream, { client }, admit);
  if (typeof admission !== 'string') return { kind: 'admitted', upstream, newOwner: { service, admission } };
  return { ...refused(admission, answerTo(head, reasonForOutcome(admission), upstream)), newOwner: { service } };
}

const OUTCOMES: Partial<Record<ErrorReason, Outcome>> = { 'no-route': 'unknown-host', 'no-backend': 'no-endpoints' };

function refused(outcome: Outcome, answer: Uint8Array): RoutingDecision {
  return { kind: 'refused', outcome, alert: undefined, answer };
}

/** Returns an HTTP response that announces the end of the connection. */
function answerTo(head: RequestHead | undefined, reason: ErrorReason, upstream?: Upstream): Uint8Array {
  writeAnswer(reason, {
    format: head === undefined ? 'text' : answerFormatFor(head.fields),
    method: head?.methodId ?? METHOD.other,
    clientMinorVersion: head?.minorVersion ?? 1,
    closes: true,
    upstream,
  });
  const answer = output.memory.slice(0, output.at);
  output.at = 0;
  return answer;
}
