/**
 * The age, in ticks of the timeout wheel (seconds), from which a connection to an endpoint is closed as soon as the
 * connection is idle. One hour, as in nginx (`keepalive_time`), so that what an old connection holds, such as the
 * memory of its TLS session and the verified certificate of the endpoint, does not stay forever.
 */
export const MAX_AGE_TICKS = 3_600;

/** A connection to an endpoint that may wait for its next request. The list writes all fields. */
export interface ListedConnection {
  /** Whether the connection is in the list. */
  isListed: boolean;
  /** The connections that became idle just before and after this one. */
  older: ListedConnection | undefined;
  newer: ListedConnection | undefined;
  close(): void;
}

/**
 * The idle connections of one worker to all endpoints, whatever their version of HTTP, in the order in which they became
 * idle.
 */
export class IdleConnections {
  readonly #maxCount: number;
  #count = 0;
  #oldest: ListedConnection | undefined;
  #newest: ListedConnection | undefined;

  constructor(maxCount: number) {
    this.#maxCount = maxCount;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Adds a connection that is not listed. If the list is full, closes the connection that was idle longest. The new connection
   * is kept, so that the idle connections of one tenant do not keep out those of the others.
   */
  add(connection: ListedConnection): void {
    const oldest = this.#oldest;
    if (this.#count >= this.#maxCount && oldest !== undefined) {
      oldest.close();
      this.delete(oldest);
    }
    connection.isListed = true;
    connection.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = connection;
    else this.#newest.newer = connection;
    this.#newest = connection;
    this.#count += 1;
  }

  /** Removes a connection that carries a request or closes. Returns false if the connection was not listed. */
  delete(connection: ListedConnection): boolean {
    if (!connection.isListed) return false;
    const { older, newer } = connection;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    connection.isListed = false;
    connection.older = undefined;
    connection.newer = undefined;
    this.#count -= 1;
    return true;
  }
}
