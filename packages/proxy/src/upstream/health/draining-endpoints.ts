/** Endpoints that have left while connections to them are open, as the workers tell of theirs. */
export class DrainingEndpoints {
  /** By worker and Service UID: keys of endpoints. */
  readonly #endpointsByWorker = new Map<number, ReadonlyMap<string, readonly string[]>>();

  /** All that this worker has now. */
  update(worker: number, endpoints: readonly DrainingEndpoint[]): void {
    const byService = Map.groupBy(endpoints, ([service]) => service);
    const keys = [...byService].map(([service, ofService]) => [service, ofService.map(([, key]) => key)] as const);
    if (keys.length === 0) this.#endpointsByWorker.delete(worker);
    else this.#endpointsByWorker.set(worker, new Map(keys));
  }

  /** The worker has ended. */
  removeWorker(worker: number): void {
    this.#endpointsByWorker.delete(worker);
  }

  /** How many of this Service: each once, however many workers have connections to it. */
  countOf(service: string): number {
    if (this.#endpointsByWorker.size === 0) return 0;
    return new Set([...this.#endpointsByWorker.values()].flatMap((byService) => byService.get(service) ?? [])).size;
  }
}

/** UID of its Service, and as of `endpointKey`. */
export type DrainingEndpoint = readonly [service: string, endpoint: string];
