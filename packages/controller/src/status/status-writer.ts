import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { isSingleObjectFailure, KubeApiError, type KubeApiErrorCode } from '../kubernetes/kube-api-error.ts';

/** The object whose status is written. Its UID and version are preconditions of the write. */
export interface StatusTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly uid: string;
  /** Absent if the kind is cluster-scoped. */
  readonly namespace?: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** The path of the object, without `/status`. */
  readonly path: string;
}

/** The fields to apply. The API server removes each field that this field manager applied earlier and that the patch does not contain. */
export interface StatusPatch {
  readonly status?: Json;
  readonly finalizers?: readonly string[];
  /**
   * Identifies the patch without its times. After a refusal, a patch with the same fingerprint is not sent again for
   * `REFUSED_RETRY_MS`.
   */
  readonly fingerprint: string;
}

export type StatusWriteOutcome =
  | { readonly kind: 'written'; readonly object: Json }
  /** The object has changed since it was read, so the status may be outdated. */
  | { readonly kind: 'conflict' }
  /** The object does not exist any more; the watch is about to deliver its deletion. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'refused' }
  /** The write of this object failed, but the API server is reachable. */
  | { readonly kind: 'failed' };

/**
 * The time after which a refused write is retried. By then an operator may have granted the missing permission or installed the custom
 * resources.
 */
const REFUSED_RETRY_MS = 10 * 60_000;

interface Refusal {
  readonly fingerprint: string;
  readonly at: number;
}

export interface StatusWriterOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fieldManager?: string;
}

/** Writes status by server-side apply, and remembers which patches the API server refused. */
export class StatusWriter {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #fieldManager: string;
  readonly #refusalByUid = new Map<string, Refusal>();
  readonly #notFoundUids = new Set<string>();
  readonly #failedUids = new Set<string>();

  constructor({ api, clock, log, fieldManager = FIELD_MANAGER }: StatusWriterOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
    this.#fieldManager = fieldManager;
  }

  /** Forgets the objects whose UID does not exist any more. */
  keepOnly(exists: (uid: string) => boolean): void {
    for (const uids of [this.#refusalByUid, this.#notFoundUids, this.#failedUids])
      for (const uid of uids.keys()) if (!exists(uid)) uids.delete(uid);
  }

  /** Writes a patch, unless the API server refused the same patch recently. Rejects if the API server is unreachable. */
  async write(target: StatusTarget, { status, finalizers, fingerprint }: StatusPatch): Promise<StatusWriteOutcome> {
    if (this.#isStillRefused(target, fingerprint)) return { kind: 'refused' };
    const { apiVersion, kind, uid, namespace, name, resourceVersion, path } = target;
    const metadata = {
      ...(namespace !== undefined && { namespace }),
      name,
      uid,
      resourceVersion,
      ...(finalizers && finalizers.length > 0 && { finalizers }),
    };
    try {
      const object = await this.#api.request({
        method: 'PATCH',
        path: `${path}/status`,
        query: { fieldManager: this.#fieldManager, force: 'true' },
        contentType: SERVER_SIDE_APPLY,
        body: { apiVersion, kind, metadata, ...(status && { status }) },
      });
      this.#refusalByUid.delete(uid);
      this.#notFoundUids.delete(uid);
      this.#failedUids.delete(uid);
      return { kind: 'written', object };
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      if (isSingleObjectFailure(error)) return this.#fail(target, error);
      switch (error.code) {
        case 'CONFLICT':
          return { kind: 'conflict' };
        case 'NOT_FOUND':
          // At the first 404, the object may have been deleted. At the second 404, the kind of the object has no status subresource,
          // because the installed custom resource definition is older than this version of Weir.
          if (this.#notFoundUids.has(uid)) return this.#refuse(target, fingerprint, error);
          this.#notFoundUids.add(uid);
          return { kind: 'gone' };
        case 'FORBIDDEN':
        case 'REFUSED':
          return this.#refuse(target, fingerprint, error);
        default:
          throw error;
      }
    }
  }

  #fail({ kind, uid, namespace, name }: StatusTarget, error: KubeApiError): StatusWriteOutcome {
    const level = this.#failedUids.has(uid) ? 'debug' : 'warn';
    this.#failedUids.add(uid);
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    this.#log[level](
      { kind, object, reason: errorMessage(error) },
      'failed to write the status of an object; retrying',
    );
    return { kind: 'failed' };
  }

  #isStillRefused({ uid }: StatusTarget, fingerprint: string): boolean {
    const refusal = this.#refusalByUid.get(uid);
    return refusal?.fingerprint === fingerprint && this.#clock.monotonic() - refusal.at < REFUSED_RETRY_MS;
  }

  #refuse({ kind, uid, namespace, name }: StatusTarget, fingerprint: string, error: KubeApiError): StatusWriteOutcome {
    const level = this.#refusalByUid.get(uid)?.fingerprint === fingerprint ? 'debug' : 'error';
    this.#refusalByUid.set(uid, { fingerprint, at: this.#clock.monotonic() });
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    const help = REMEDIES[error.code];
    this.#log[level](
      { kind, object, reason: errorMessage(error), ...(help && { help }) },
      'the API server refused a status; retrying in 10 minutes',
    );
    return { kind: 'refused' };
  }
}

const REMEDIES: { readonly [C in KubeApiErrorCode]?: string } = {
  NOT_FOUND:
    'install the custom resources of this version: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions',
  FORBIDDEN:
    'grant the permissions of this version: helm upgrade, or add the rules of charts/weir/rights/controller.yaml',
};

/** The maximum length of a field manager's name that the API server accepts. */
const MAX_FIELD_MANAGER_CHARACTERS = 128;

/**
 * The field managers for the status and for the finalizer. They are separate, because server-side apply removes fields that the same
 * manager applied before and omits now.
 */
const FIELD_MANAGERS: { readonly status: string; readonly finalizer: string } = {
  status: FIELD_MANAGER,
  finalizer: 'weir-finalizer',
};

/**
 * Returns the name of a fleet's field manager. Fleets in one cluster have different classes, and a fleet must remove only its own
 * status. For a Service without a class, only the field manager shows which fleet wrote the status.
 */
export function fieldManagerFor(
  loadBalancerClass: string = DEFAULT_FLEET_SETTINGS.loadBalancerClass,
  of: keyof typeof FIELD_MANAGERS = 'status',
): string {
  if (loadBalancerClass === DEFAULT_FLEET_SETTINGS.loadBalancerClass) return FIELD_MANAGERS[of];
  const prefix = `${FIELD_MANAGERS[of]}:`;
  return `${prefix}${loadBalancerClass.slice(-(MAX_FIELD_MANAGER_CHARACTERS - prefix.length))}`;
}
