import { type Client, type EndpointStats, EXCLUDED } from '@weir/model/data-plane';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import type { ErrorReason } from './passes/error-answer.ts';

/** The endpoints that were tried for the open request of a client, and the choice of the next one. */
export class EndpointAttempts {
  readonly #client: Client;
  readonly #tried: EndpointStats[] = [];
  #hasTriedExcluded = false;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Forgets the endpoints of the request before. */
  begin(): void {
    // Not `length = 0`, because this is a call into the runtime of V8.
    while (this.#tried.length > 0) this.#tried.pop();
    this.#hasTriedExcluded = false;
  }

  get count(): number {
    return this.#tried.length;
  }

  /** The endpoint that was tried last. */
  get last(): EndpointStats | undefined {
    return this.#tried.at(-1);
  }

  get mayContinue(): boolean {
    return this.#tried.length < MAX_ENDPOINT_ATTEMPTS;
  }

  hasUntriedEndpoint(upstream: Upstream): boolean {
    return upstream.hasUntriedEndpoint(this.#tried);
  }

  add(stats: EndpointStats): void {
    this.#tried.push(stats);
  }

  /** Lets the same endpoint be chosen again, because the last attempt says nothing about the endpoint. */
  forgetLast(): void {
    this.#tried.pop();
  }

  /**
   * Returns the endpoint of the client's cookie for the first attempt, unless this endpoint is excluded; otherwise
   * another endpoint. `failure` is why the last attempt has failed.
   */
  choose(
    upstream: Upstream,
    cookieEndpoint: EndpointStats | undefined,
    failure: ErrorReason,
  ): EndpointStats | undefined {
    if (cookieEndpoint !== undefined && cookieEndpoint.tier !== EXCLUDED && this.#tried.length === 0)
      return cookieEndpoint;
    return upstream.choose(this.#client, this.#tried) ?? this.#chooseExcluded(upstream, failure);
  }

  /**
   * Returns one excluded endpoint per request, because an endpoint may have been excluded by mistake. Returns none if the
   * other endpoints have too many connections, because they work.
   */
  #chooseExcluded(upstream: Upstream, failure: ErrorReason): EndpointStats | undefined {
    if (this.#hasTriedExcluded || failure === 'overloaded') return undefined;
    this.#hasTriedExcluded = true;
    return upstream.chooseExcluded(this.#tried);
  }
}
