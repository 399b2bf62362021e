import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import type { EndpointName, SocketAddress } from './topology.ts';

/** The response on one connection. Times are of the machine's monotonic clock. */
export type PollResponse = {
  readonly startedAt: number;
  readonly endedAt: number;
  /** The name that the backend sent, or an error message. */
  readonly text: string;
};

const RESPONSE_TIMEOUT_MS = 2_000;

export function requestOnce(address: SocketAddress): Promise<PollResponse> {
  const { promise, resolve } = Promise.withResolvers<PollResponse>();
  const startedAt = monotonicMs();
  const finish = (text: string): void => {
    socket.destroy();
    resolve({ startedAt, endedAt: monotonicMs(), text });
  };
  let received = '';
  const socket = connect(address);
  socket.setTimeout(RESPONSE_TIMEOUT_MS);
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    received += chunk;
  });
  socket.once('end', () => finish(received === '' ? 'closed without a response' : received));
  socket.once('timeout', () => finish(`no response for ${RESPONSE_TIMEOUT_MS} ms`));
  socket.once('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  return promise;
}

/** Wait between two connections. Without a wait, three polling clients would use one of two processors, and the proxies need both. */
const POLL_INTERVAL_MS = 2;
/** Number of requests after the first response from the new endpoint, to check that no proxy uses the old endpoint again. */
const EXTRA_RESPONSES = 10;
const MAX_POLL_MS = 10_000;

export type Poll = {
  /** Resolves with the first response. */
  readonly firstResponse: Promise<void>;
  /** All responses up to `EXTRA_RESPONSES` responses after the first response from `to`, but only those within `MAX_POLL_MS`. */
  readonly responses: Promise<readonly PollResponse[]>;
};

/** Requests the name of the backend repeatedly, each time on a new connection. */
export function poll(address: SocketAddress, to: EndpointName): Poll {
  const { promise: firstResponse, resolve: onFirst } = Promise.withResolvers<void>();
  return { firstResponse, responses: requestUntil(address, { to, onFirst }) };
}

async function requestUntil(
  address: SocketAddress,
  { to, onFirst }: { readonly to: EndpointName; onFirst(): void },
): Promise<readonly PollResponse[]> {
  const responses: PollResponse[] = [];
  let responsesSinceChange = 0;
  for (;;) {
    const response = await requestOnce(address);
    responses.push(response);
    onFirst();
    if (responsesSinceChange > 0 || response.text === to) responsesSinceChange += 1;
    const elapsedMs = response.endedAt - (responses[0]?.startedAt ?? 0);
    if (responsesSinceChange > EXTRA_RESPONSES || elapsedMs > MAX_POLL_MS) return responses;
    await sleep(POLL_INTERVAL_MS);
  }
}

/** A change of a Service's endpoint, and the times at which the write of the change started and ended. */
export type EndpointChange = {
  readonly from: EndpointName;
  readonly to: EndpointName;
  readonly startedAt: number;
  /** The time at which the source had stored the change. */
  readonly writtenAt: number;
};

export type PollEvaluation = {
  /** Time from `writtenAt` to the first response from the new endpoint through this proxy. */
  readonly ms: number;
  readonly responses: number;
  /**
   * Descriptions of wrong responses: an error, a response from the old endpoint after a response from the new endpoint, or a response from
   * the new endpoint before the write.
   */
  readonly wrong: readonly string[];
};

/** Evaluates the consecutive responses of one proxy. Returns undefined if no response comes from the new endpoint. */
export function evaluateResponses(
  responses: readonly PollResponse[],
  { from, to, startedAt: writeStartedAt, writtenAt }: EndpointChange,
): PollEvaluation | undefined {
  const first = responses.find(({ text }) => text === to);
  if (first === undefined) return undefined;
  const wrong = responses.flatMap(({ text, startedAt, endedAt }) => {
    if (text === to) return endedAt < writeStartedAt ? [`response of ${to} before the write`] : [];
    if (text !== from) return [text];
    return startedAt > first.endedAt
      ? [`response of ${from} ${(startedAt - first.endedAt).toFixed(1)} ms after a response of ${to}`]
      : [];
  });
  // can be below 0: the API server may notify the controller before it responds to the write (`writtenAt`)
  return { ms: Math.max(0, first.endedAt - writtenAt), responses: responses.length, wrong };
}
