import { KubeApiError } from '../../src/kubernetes/api-error.ts';
import type { ApiRequest, Json, WatchRequest } from '../../src/kubernetes/kube-api.ts';

/** An API server that has the EndpointSlices that a test says; it may be away, or refuse. */
export class ScriptedApi {
  /** What was asked for, each once. */
  readonly requestedPaths: Set<string> = new Set();
  #items: readonly Json[] = [];
  #failure: KubeApiError | undefined;
  #version = 1;
  readonly #watches = new Map<WatchRequest, (error: KubeApiError) => void>();

  /** The EndpointSlices from now on; whoever watches hears of each. */
  setSlices(...items: readonly Json[]): void {
    const before = this.#items;
    this.#version += 1;
    this.#items = items.map((item) => withVersion(item, this.#version));
    for (const { onEvent } of this.#watches.keys()) {
      for (const item of this.#items) onEvent('MODIFIED', item);
      for (const item of before) if (!items.some((each) => nameOf(each) === nameOf(item))) onEvent('DELETED', item);
    }
  }

  /** Every request, and every open watch, fails so from now on. */
  failWith(failure: KubeApiError): void {
    this.#failure = failure;
    for (const fail of [...this.#watches.values()]) fail(failure);
  }

  recover(): void {
    this.#failure = undefined;
  }

  async request({ path, query = {} }: ApiRequest): Promise<Json> {
    this.requestedPaths.add(`${path}?${query.labelSelector}`);
    if (this.#failure !== undefined) throw this.#failure;
    return { items: this.#items, metadata: { resourceVersion: String(this.#version) } };
  }

  async watch(request: WatchRequest): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const { promise, reject } = Promise.withResolvers<void>();
    this.#watches.set(request, reject);
    request.signal.addEventListener('abort', () => reject(request.signal.reason as KubeApiError), { once: true });
    request.onOpen();
    const isBehind = request.query.resourceVersion !== String(this.#version);
    if (isBehind) for (const item of this.#items) request.onEvent('MODIFIED', item);
    await promise.finally(() => this.#watches.delete(request));
  }

  close(): void {}
}

export const AWAY: KubeApiError = new KubeApiError('AWAY', 'the API server https://127.0.0.1:7443 does not answer');

function withVersion(item: Json, version: number): Json {
  return { ...item, metadata: { ...(item.metadata as Json), resourceVersion: String(version) } };
}

function nameOf(item: Json): unknown {
  return (item.metadata as Json).name;
}
