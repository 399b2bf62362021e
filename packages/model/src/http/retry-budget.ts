// Limits how many requests of a Service are sent again. Without a limit, the retries of all clients would multiply the load of endpoints
// that fail because they are overloaded (the retry budget of Finagle and Envoy).

/** The requests and retries of one Service in one worker within the last ten seconds. */
export interface RetryBudget {
  requests: number;
  retries: number;
  /** The last second of the window. */
  second: number;
  /** The requests of this second. They are not in `bySecond` yet, so that counting a request reads no other object. */
  requestsOfSecond: number;
  /** The requests, and then the retries, of each second of the window. */
  readonly bySecond: Uint32Array;
}

const WINDOW_SECONDS = 10;
/** The share of the window's requests that may be sent again. */
export const MAX_RETRY_SHARE = 0.2;
/** The retries that are allowed beside this share, so that a Service with few requests has retries too. */
export const MIN_RETRIES_PER_SECOND = 3;

export function createRetryBudget(): RetryBudget {
  return { requests: 0, retries: 0, second: 0, requestsOfSecond: 0, bySecond: new Uint32Array(2 * WINDOW_SECONDS) };
}

/** Counts a request that arrived at `second`, a number of seconds that never decreases. */
export function recordRequest(budget: RetryBudget, second: number): void {
  if (second > budget.second) forgetOldSeconds(budget, second);
  budget.requests += 1;
  budget.requestsOfSecond += 1;
}

/**
 * Takes one retry at `second`, and returns whether the retry is allowed. Invariant: within ten seconds, at most 20 % of the requests plus 3
 * per second are sent again.
 */
export function takeRetry(budget: RetryBudget, second: number): boolean {
  if (second > budget.second) forgetOldSeconds(budget, second);
  const maxRetries = budget.requests * MAX_RETRY_SHARE + MIN_RETRIES_PER_SECOND * WINDOW_SECONDS;
  if (budget.retries + 1 > maxRetries) return false;
  budget.retries += 1;
  add(budget.bySecond, WINDOW_SECONDS + (second % WINDOW_SECONDS));
  return true;
}

/** Moves the window so that it ends with `second`. */
function forgetOldSeconds(budget: RetryBudget, second: number): void {
  const { bySecond } = budget;
  bySecond[budget.second % WINDOW_SECONDS] = budget.requestsOfSecond;
  budget.requestsOfSecond = 0;
  const first = Math.max(budget.second + 1, second - WINDOW_SECONDS + 1);
  for (let forgotten = first; forgotten <= second; forgotten += 1) {
    const index = forgotten % WINDOW_SECONDS;
    budget.requests -= bySecond[index] as number;
    budget.retries -= bySecond[WINDOW_SECONDS + index] as number;
    bySecond[index] = 0;
    bySecond[WINDOW_SECONDS + index] = 0;
  }
  budget.second = second;
}

function add(counts: Uint32Array, index: number): void {
  counts[index] = (counts[index] as number) + 1;
}
