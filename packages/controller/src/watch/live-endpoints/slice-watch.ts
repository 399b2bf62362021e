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
  /** Called when `liveSlices` or `problem` may have changed. */
  readonly onChange: () => void;
}

/**
 * How long the API server may be unreachable before a problem is reported and the files provide endpoints as well. The time is long enough
 * to ignore that one of several API servers stops, because watches then reopen within a second.
 */
const UNREACHABLE_AFTER_MS = 10_000;
/**
 * The shortest time between two changes of the problem's message while the API server is unreachable, because each attempt may fail
 * with a different message.
 */
const MIN_FAILURE_UPDATE_INTERVAL_MS = 300_000;

/** Watches the EndpointSlices of one Service at the API server. */
export class SliceWatch implements ReflectorTarget {
  readonly #options: SliceWatchOptions;
  readonly #closing = new AbortController();
  readonly #reflecting: Promise<void>;
  #service: ServiceObject;
  #liveSlices: LiveSlices;
  /** The slices by name. */
  #slices: Map<string, SliceObject> = new Map();
  /** The slices of a list that is not complete yet, by name. */
  #partialList: Map<string, SliceObject> | undefined;
  #isListed = false;
  #missingEndpoints: string | undefined;
  #failure: KubeApiError | undefined;
  #failureRecordedAt = 0;
  /** Runs while the watch has failed for less than `UNREACHABLE_AFTER_MS`. */
  #unreachableTimer: Timer | undefined;
  #isUnreachable = false;

  constructor(options: SliceWatchOptions) {
    this.#options = options;
    this.#service = options.service;
    this.#liveSlices = options.initial;
    const { api, clock, log, service } = options;
    const path = `/apis/discovery.k8s.io/v1/namespaces/${service.namespace}/endpointslices`;
    const query = { labelSelector: `${SERVICE_NAME_LABEL}=${service.name}` };
    this.#reflecting = reflect({ api, path, query, target: this, clock, log }, this.#closing.signal);
  }

  get liveSlices(): LiveSlices {
    return this.#liveSlices;
  }

  /** Replaces the Service by its current version in the files, because its ports may have changed. */
  set service(service: ServiceObject) {
    if (service === this.#service) return;
    this.#service = service;
    if (this.#isListed) this.#evaluate();
  }

  problem(): Problem | undefined {
    const failure = this.#failure;
    const message =
      failure !== undefined && (this.#isUnreachable || failure.code !== 'AWAY')
        ? `its endpoints cannot be read from the API server: ${errorMessage(failure)}; until the endpoints can be read, ${this.#currentEffect()}. ${this.#fixFor(failure)}`
        : this.#missingEndpoints &&
          `the API server lists ${this.#missingEndpoints}; until it lists such an endpoint, ${this.#currentEffect()}`;
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

  listStarted(): void {
    this.#partialList = new Map();
  }

  listCompleted(): void {
    this.#slices = this.#partialList ?? new Map();
    this.#partialList = undefined;
    this.#isListed = true;
    this.#evaluate();
  }

  put(raw: Json): void {
    const { object } = parseEndpointSlice(raw);
    if (object === undefined) return;
    (this.#partialList ?? this.#slices).set(object.name, withDistinctName(object));
    if (this.#partialList === undefined) this.#evaluate();
  }

  deleted(raw: Json): void {
    const { name = '' } = (raw.metadata ?? {}) as { name?: string };
    if (this.#slices.delete(name)) this.#evaluate();
  }

  failureChanged(error: KubeApiError | undefined): void {
    const before = this.#failure?.message;
    this.#setFailure(error);
    if (error === undefined) {
      this.#unreachableTimer?.cancel();
      this.#unreachableTimer = undefined;
      this.#isUnreachable = false;
    } else if (!this.#isUnreachable) {
      this.#unreachableTimer ??= this.#options.clock.setTimeout(() => this.#markUnreachable(), UNREACHABLE_AFTER_MS);
    }
    if (before !== this.#failure?.message) this.#options.onChange();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unreachableTimer?.cancel();
    await this.#reflecting;
  }

  #setFailure(error: KubeApiError | undefined): void {
    const now = this.#options.clock.monotonic();
    const isSame = this.#isUnreachable && error?.code === 'AWAY' && this.#failure?.code === 'AWAY';
    if (isSame && now - this.#failureRecordedAt < MIN_FAILURE_UPDATE_INTERVAL_MS) return;
    this.#failure = error;
    this.#failureRecordedAt = now;
  }

  #markUnreachable(): void {
    this.#unreachableTimer = undefined;
    this.#isUnreachable = true;
    this.#liveSlices = asUnreachable(this.#liveSlices);
    this.#options.onChange();
  }

  /**
   * Uses the slices that were read, unless endpoints are missing. A list with missing endpoints never replaces a complete list or the
   * files.
   */
  #evaluate(): void {
    const slices = [...this.#slices.values()];
    this.#missingEndpoints = missingEndpoints(this.#service, slices);
    if (this.#missingEndpoints === undefined) this.#liveSlices = withCompleteList(this.#liveSlices, slices);
    this.#options.onChange();
  }

  #currentEffect(): string {
    switch (this.#liveSlices.kind) {
      case 'none':
        return 'the endpoints in the files are used';
      case 'live':
        return 'the endpoints last read from the API server stay in use';
      case 'cached':
      case 'unreachable':
        return 'the endpoints last read from the API server stay in use, together with those in the files';
    }
  }

  #fixFor({ code }: KubeApiError): string {
    switch (code) {
      case 'FORBIDDEN':
        return `Grant the permissions get, list and watch on endpointslices.discovery.k8s.io in namespace ${this.#service.namespace} to the user in the kubeconfig that --kubeconfig names`;
      case 'UNAUTHORIZED':
        return 'Correct the credentials of the user in the kubeconfig that --kubeconfig names';
      default:
        return 'Check that the API servers run, and that server and certificate-authority in --kubeconfig are correct';
    }
  }
}

/**
 * Gives the slice a name that no slice in the files has, because slices from the API server and from the files may be in use at the same
 * time.
 */
function withDistinctName(slice: SliceObject): SliceObject {
  return Object.freeze({ ...slice, name: `api-server.${slice.name}` });
}

/**
 * Whether the endpoints of a Service come from the API server, from the files, or from both. A fleet may balance the same API servers
 * that it reads from. A wrong list of endpoints could then make these API servers unreachable for good, so an unconfirmed list never
 * replaces the files.
 */
export type LiveSlices =
  /** No usable list was ever read, so the files are used. */
  | { readonly kind: 'none' }
  /**
   * The list comes from disk, or from the time before the Service left the files and came back. Its age is unknown, so the files
   * are used as well.
   */
  | { readonly kind: 'cached'; readonly slices: readonly SliceObject[] }
  /** The list was read by this process and is used instead of the files. */
  | { readonly kind: 'live'; readonly slices: readonly SliceObject[] }
  /** The API server became unreachable after kind `live`. The files are used as well until the API server lists other endpoints. */
  | { readonly kind: 'unreachable'; readonly slices: readonly SliceObject[] };

/** Returns the state after a complete list was read. After kind `unreachable`, a list with the same endpoints does not change the kind. */
export function withCompleteList(before: LiveSlices, slices: readonly SliceObject[]): LiveSlices {
  const isUnreachable = before.kind === 'unreachable' && endpointsIn(before.slices) === endpointsIn(slices);
  return { kind: isUnreachable ? 'unreachable' : 'live', slices };
}

/** Returns the state after a period without a watch. */
export function asCached(before: LiveSlices): LiveSlices {
  return before.kind === 'live' ? { ...before, kind: 'cached' } : before;
}

/** Returns the state after the API server has been unreachable for `UNREACHABLE_AFTER_MS`. */
export function asUnreachable(before: LiveSlices): LiveSlices {
  return before.kind === 'live' ? { ...before, kind: 'unreachable' } : before;
}

/** Returns the slices from which the endpoints of a Service are taken. */
export function effectiveSlices(files: readonly SliceObject[], live: LiveSlices): readonly SliceObject[] {
  switch (live.kind) {
    case 'none':
      return files;
    case 'live':
      return live.slices;
    case 'cached':
    case 'unreachable':
      return [...files, ...live.slices];
  }
}

/**
 * Returns why a list is unusable, as text that follows "lists" in messages; undefined if each port of the Service has an endpoint in
 * the list.
 */
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
  return `no endpoint for port ${missing.port}${missing.name === null ? '' : ` "${missing.name}"`}, only for port ${names.join(', ') || 'none'}: rename the port of the Service to the port name in its EndpointSlices`;
}

/** Returns the ready endpoints as text. The text does not depend on how the endpoints are spread over slices. */
function endpointsIn(slices: readonly SliceObject[]): string {
  const endpoints = slices.flatMap((slice) =>
    slice.endpoints
      .filter(({ ready }) => ready)
      .flatMap(({ addresses }) => addresses.flatMap((address) => slice.ports.map(({ port }) => `${address} ${port}`))),
  );
  return [...new Set(endpoints)].sort().join('\n');
}
