/** Endpoints that have left while connections to them are open, as the workers tell of theirs. */
export class DepartedBook {
  /** By worker and Service UID: keys of endpoints. */
  readonly #told = new Map<number, ReadonlyMap<string, readonly string[]>>();

  /** All that this worker has now. */
  take(worker: number, endpoints: readonly DepartedEndpoint[]): void {
    const byService = Map.groupBy(endpoints, ([service]) => service);
    const keys = [...byService].map(([service, ofService]) => [service, ofService.map(([, key]) => key)] as const);
    if (keys.length === 0) this.#told.delete(worker);
    else this.#told.set(worker, new Map(keys));
  }

  /** The worker has ended. */
  forget(worker: number): void {
    this.#told.delete(worker);
  }

  /** How many of this Service: each once, however many workers have connections to it. */
  of(service: string): number {
    if (this.#told.size === 0) return 0;
    return new Set([...this.#told.values()].flatMap((byService) => byService.get(service) ?? [])).size;
  }
}

/** UID of its Service, and as of `endpointKey`. */
export type DepartedEndpoint = readonly [service: string, endpoint: string];
