import { type Problem, type ServiceObject, type SliceObject, subjectFor, truncateMessage } from '@weir/model';
import { type Clock, errorMessage, type Logger, type Timer } from '@weir/runtime';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import type { KubeApiError } from '../../kubernetes/kube-api-error.ts';
import { parseEndpointSlice, SERVICE_NAME_LABEL } from '../../parse/endpoint-slice.ts';
import { type ReflectorTarget, reflect } from '../kubernetes/reflector.ts';

export interface SliceWatchOptions {
  readonly service: ServiceObject;
  readonly api: Pick<KubeApi, 'request' | 'watch'>;
  readonly initial: LiveSlices;
  readonly clock: Clock;
  readonly log: Logger;
  /** The refinement or the problem is another one now. */
  readonly changed: () => void;
}

/**
 * How long the API server may be away before anybody is told, and before what it said is no longer used alone. Each one that is stopped
 * takes watches with it, which are open again within a second.
 */
const UNREACHABLE_AFTER_MS = 10_000;
/** A server that is away is so in many words, with each try in others: who reads along needs them now and then. */
const MIN_FAILURE_CHANGE_MS = 300_000;

/** The EndpointSlices of one Service of the files, as the API server has them. */
export class SliceWatch implements ReflectorTarget {
  readonly #options: SliceWatchOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #service: ServiceObject;
  #liveSlices: LiveSlices;
  /** By name. */
  #slices: Map<string, SliceObject> = new Map();
  /** Those of a list that is not whole yet. */
  #listing: Map<string, SliceObject> | undefined;
  #isListed = false;
  #missing: string | undefined;
  #failure: KubeApiError | undefined;
  #failedAt = 0;
  /** Running: it has failed for less than `PATIENCE_MS`. */
  #unreachableTimer: Timer | undefined;
  #isUnreachable = false;

  constructor(options: SliceWatchOptions) {
    this.#options = options;
    this.#service = options.service;
    this.#liveSlices = options.initial;
    const { api, clock, log, service } = options;
    const path = `/apis/discovery.k8s.io/v1/namespaces/${service.namespace}/endpointslices`;
    const query = { labelSelector: `${SERVICE_NAME_LABEL}=${service.name}` };
    this.#running = reflect({ api, path, query, target: this, clock, log }, this.#closing.signal);
  }

  get liveSlices(): LiveSlices {
    return this.#liveSlices;
  }

  /** Its ports may be others. */
  set service(service: ServiceObject) {
    if (service === this.#service) return;
    this.#service = service;
    if (this.#isListed) this.#evaluate();
  }

  problem(): Problem | undefined {
    const failure = this.#failure;
    const message =
      failure !== undefined && (this.#isUnreachable || failure.code !== 'AWAY')
        ? `what the API server says of its endpoints cannot be read: ${errorMessage(failure)}; until then ${this.#currentEffect()}. ${this.#remedyFor(failure)}`
        : this.#missing && `at the API server it has ${this.#missing}; until then ${this.#currentEffect()}`;
    if (message === undefined) return undefined;
    const subject = subjectFor('Service', this.#service);
    return Object.freeze({
      code: 'EndpointsNotRefined',
      subject,
      severity: 'warning',
      heals: true,
      message: truncateMessage(message),
    });
  }

  listing(): void {
    this.#listing = new Map();
  }

  listed(): void {
    this.#slices = this.#listing ?? new Map();
    this.#listing = undefined;
    this.#isListed = true;
    this.#evaluate();
  }

  put(raw: Json): void {
    const { object } = parseEndpointSlice(raw);
    if (object === undefined) return;
    (this.#listing ?? this.#slices).set(object.name, withDistinctName(object));
    if (this.#listing === undefined) this.#evaluate();
  }

  deleted(raw: Json): void {
    const { name = '' } = (raw.metadata ?? {}) as { name?: string };
    if (this.#slices.delete(name)) this.#evaluate();
  }

  failed(error: KubeApiError | undefined): void {
    const before = this.#failure?.message;
    this.#setFailure(error);
    if (error === undefined) {
      this.#unreachableTimer?.cancel();
      this.#unreachableTimer = undefined;
      this.#isUnreachable = false;
    } else if (!this.#isUnreachable) {
      this.#unreachableTimer ??= this.#options.clock.setTimeout(() => this.#markUnreachable(), UNREACHABLE_AFTER_MS);
    }
    if (before !== this.#failure?.message) this.#options.changed();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unreachableTimer?.cancel();
    await this.#running;
  }

  #setFailure(error: KubeApiError | undefined): void {
    const now = this.#options.clock.monotonic();
    const isSame = this.#isUnreachable && error?.code === 'AWAY' && this.#failure?.code === 'AWAY';
    if (isSame && now - this.#failedAt < MIN_FAILURE_CHANGE_MS) return;
    this.#failure = error;
    this.#failedAt = now;
  }

  #markUnreachable(): void {
    this.#unreachableTimer = undefined;
    this.#isUnreachable = true;
    this.#liveSlices = asFailed(this.#liveSlices);
    this.#options.changed();
  }

  /** A list that lacks something never takes the place of one that does not, nor of the files. */
  #evaluate(): void {
    const slices = [...this.#slices.values()];
    this.#missing = missingEndpoints(this.#service, slices);
    if (this.#missing === undefined) this.#liveSlices = withCompleteList(this.#liveSlices, slices);
    this.#options.changed();
  }

  #currentEffect(): string {
    switch (this.#liveSlices.kind) {
      case 'none':
        return 'those of the files serve';
      case 'alone':
        return 'those that it named last serve';
      case 'unread':
      case 'failed':
        return 'those that it named last serve, and those of the files';
    }
  }

  #remedyFor({ code }: KubeApiError): string {
    switch (code) {
      case 'FORBIDDEN':
        return `Grant the user of --kubeconfig get, list and watch of endpointslices.discovery.k8s.io in namespace ${this.#service.namespace}`;
      case 'UNAUTHORIZED':
        return 'Correct the user of --kubeconfig';
      default:
        return 'Check --kubeconfig: its server and certificate-authority, and whether the API servers run';
    }
  }
}

/** Under a name that no slice of the files has: both may serve. */
function withDistinctName(slice: SliceObject): SliceObject {
  return Object.freeze({ ...slice, name: `api-server.${slice.name}` });
}

// When what an API server says of a Service's endpoints is used instead of the files, and when both are. Whoever balances API servers
// hears of them through itself: a list that is wrong would cut it off from the one who could correct it, so none is ever the last word.
export type LiveSlices =
  /** Nothing usable was ever read: the files serve. */
  | { readonly kind: 'none' }
  /** From the disk, or of a Service that was gone meanwhile: how old it is nobody knows, so the files serve as well. */
  | { readonly kind: 'unread'; readonly slices: readonly SliceObject[] }
  /** Read by this process: it serves instead of the files. */
  | { readonly kind: 'alone'; readonly slices: readonly SliceObject[] }
  /** While it served alone the API server fell silent: the files serve as well, until it says something else. */
  | { readonly kind: 'failed'; readonly slices: readonly SliceObject[] };

/** With a list that lacks nothing. */
export function withCompleteList(before: LiveSlices, slices: readonly SliceObject[]): LiveSlices {
  const isFailed = before.kind === 'failed' && endpointsIn(before.slices) === endpointsIn(slices);
  return { kind: isFailed ? 'failed' : 'alone', slices };
}

/** After a time in which it was not asked for: how old it is nobody knows. */
export function asUnread(before: LiveSlices): LiveSlices {
  return before.kind === 'alone' ? { ...before, kind: 'unread' } : before;
}

/** The API server has not answered for a while. */
export function asFailed(before: LiveSlices): LiveSlices {
  return before.kind === 'alone' ? { ...before, kind: 'failed' } : before;
}

/** What a Service's endpoints are taken from. */
export function effectiveSlices(files: readonly SliceObject[], refinement: LiveSlices): readonly SliceObject[] {
  switch (refinement.kind) {
    case 'none':
      return files;
    case 'alone':
      return refinement.slices;
    case 'unread':
    case 'failed':
      return [...files, ...refinement.slices];
  }
}

/** Why a list cannot serve, to be said after "has"; undefined: each port of the Service has an endpoint in it. */
export function missingEndpoints(
  { ports, publishNotReadyAddresses }: Pick<ServiceObject, 'ports' | 'publishNotReadyAddresses'>,
  slices: readonly SliceObject[],
): string | undefined {
  const ready = slices.filter(({ endpoints }) =>
    endpoints.some((each) => each.addresses.length > 0 && (each.ready || publishNotReadyAddresses)),
  );
  if (ready.length === 0) return 'no ready endpoint';
  const offered = ready.flatMap((slice) => slice.ports.filter(({ port }) => port !== null));
  const missing = ports.find(
    ({ name, protocol }) => !offered.some((each) => (each.name ?? '') === (name ?? '') && each.protocol === protocol),
  );
  if (missing === undefined) return undefined;
  const names = [...new Set(offered.map(({ name, port }) => (name === null ? `${port} without a name` : `"${name}"`)))];
  return `no endpoint for port ${missing.port}${missing.name === null ? '' : ` "${missing.name}"`}, only for ${names.join(', ') || 'none'}: name the port of the Service as its endpoints do`;
}

/** The same text for the same endpoints, in whatever slices. */
function endpointsIn(slices: readonly SliceObject[]): string {
  const endpoints = slices.flatMap((slice) =>
    slice.endpoints
      .filter(({ ready }) => ready)
      .flatMap(({ addresses }) => addresses.flatMap((address) => slice.ports.map(({ port }) => `${address} ${port}`))),
  );
  return [...new Set(endpoints)].sort().join('\n');
}
