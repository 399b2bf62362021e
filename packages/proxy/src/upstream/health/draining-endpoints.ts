/** Endpoints that were removed while connections to them are open, as reported by the workers. */
export class DrainingEndpoints {
  /** Keys of endpoints, by worker and UID of the Service. */
  readonly #endpointsByWorker = new Map<number, ReadonlyMap<string, readonly string[]>>();

  /** Replaces the list of this worker. */
  update(worker: number, endpoints: readonly DrainingEndpoint[]): void {
    const byService = Map.groupBy(endpoints, ([service]) => service);
    const keys = [...byService].map(([service, ofService]) => [service, ofService.map(([, key]) => key)] as const);
    if (keys.length === 0) this.#endpointsByWorker.delete(worker);
    else this.#endpointsByWorker.set(worker, new Map(keys));
  }

  removeWorker(worker: number): void {
    this.#endpointsByWorker.delete(worker);
  }

  /** Returns the number of draining endpoints of this Service; an endpoint of several workers counts once. */
  countOf(service: string): number {
    if (this.#endpointsByWorker.size === 0) return 0;
    return new Set([...this.#endpointsByWorker.values()].flatMap((byService) => byService.get(service) ?? [])).size;
  }
}

/** UID of the Service and `endpointKey` of the endpoint. */
export type DrainingEndpoint = readonly [service: string, endpoint: string];
