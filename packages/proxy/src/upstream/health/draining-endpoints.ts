/** Endpoints that were removed but still have open connections, as reported by the workers. */
export class DrainingEndpoints {
  /** Keys of endpoints, by worker and by UID of the Service. */
  readonly #endpointsByWorker = new Map<number, ReadonlyMap<string, readonly string[]>>();

  /** Replaces the draining endpoints of this worker. */
  update(worker: number, endpoints: readonly DrainingEndpoint[]): void {
    const byService = Map.groupBy(endpoints, ([service]) => service);
    const keys = [...byService].map(([service, ofService]) => [service, ofService.map(([, key]) => key)] as const);
    if (keys.length === 0) this.#endpointsByWorker.delete(worker);
    else this.#endpointsByWorker.set(worker, new Map(keys));
  }

  removeWorker(worker: number): void {
    this.#endpointsByWorker.delete(worker);
  }

  /**
   * Returns the number of draining endpoints of this Service. An endpoint that drains in several workers counts once.
   */
  countOf(service: string): number {
    if (this.#endpointsByWorker.size === 0) return 0;
    return new Set([...this.#endpointsByWorker.values()].flatMap((byService) => byService.get(service) ?? [])).size;
  }
}

/** The UID of the Service and the `endpointKey` of the endpoint. */
export type DrainingEndpoint = readonly [service: string, endpoint: string];
