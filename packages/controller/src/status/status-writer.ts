import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { KubeApiError, type KubeApiErrorCode } from '../kubernetes/kube-api-error.ts';

/** An object as it was when its status was decided: UID and version are preconditions of the write. */
export interface StatusTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly uid: string;
  /** Absent: of the whole cluster. */
  readonly namespace?: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** Without `/status`. */
  readonly path: string;
}

/** Whatever is left out and was ours goes away. */
export interface StatusPatch {
  readonly status?: Json;
  readonly finalizers?: readonly string[];
  /** What the status says but for times: what was refused is not asked again in the same words. */
  readonly fingerprint: string;
}

export type StatusWriteOutcome =
  | { readonly kind: 'written'; readonly object: Json }
  /** It changed meanwhile, and what was decided may not be right any more. */
  | { readonly kind: 'changed' }
  /** It does not exist any more, as the watch is about to tell. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'refused' };

/** Rights are given and resources are installed: what was refused is tried again, rarely. */
const REFUSED_RETRY_MS = 10 * 60_000;

interface Refusal {
  readonly fingerprint: string;
  readonly at: number;
}

export interface StatusWriterOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whose status it is. */
  readonly fieldManager?: string;
}

/** Writes status by server-side apply, and remembers what the API server would not take. */
export class StatusWriter {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #fieldManager: string;
  /** By UID. */
  readonly #refusalByUid = new Map<string, Refusal>();
  readonly #notFoundUids = new Set<string>();

  constructor({ api, clock, log, fieldManager = FIELD_MANAGER }: StatusWriterOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
    this.#fieldManager = fieldManager;
  }

  /** Forgets the objects that are gone. */
  keepOnly(isThere: (uid: string) => boolean): void {
    for (const known of [this.#refusalByUid, this.#notFoundUids])
      for (const uid of known.keys()) if (!isThere(uid)) known.delete(uid);
  }

  /** Rejects when the API server is away. */
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
      return { kind: 'written', object };
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      switch (error.code) {
        case 'CONFLICT':
          return { kind: 'changed' };
        case 'NOT_FOUND':
          // Once, it was deleted and the watch has still to tell. Again, its kind has no status: an older definition is installed.
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

  #isStillRefused({ uid }: StatusTarget, words: string): boolean {
    const refusal = this.#refusalByUid.get(uid);
    return refusal?.fingerprint === words && this.#clock.monotonic() - refusal.at < REFUSED_RETRY_MS;
  }

  #refuse({ kind, uid, namespace, name }: StatusTarget, fingerprint: string, error: KubeApiError): StatusWriteOutcome {
    const level = this.#refusalByUid.get(uid)?.fingerprint === fingerprint ? 'debug' : 'error';
    this.#refusalByUid.set(uid, { fingerprint, at: this.#clock.monotonic() });
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    const help = REMEDIES[error.code];
    this.#log[level]({ kind, object, reason: errorMessage(error), ...(help && { help }) }, 'a status was refused');
    return { kind: 'refused' };
  }
}

const REMEDIES: { readonly [C in KubeApiErrorCode]?: string } = {
  NOT_FOUND:
    'install the custom resources of this version: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions',
  FORBIDDEN: 'grant what this version needs: helm upgrade, or by hand what charts/weir/rights/controller.yaml lists',
};

/** What the API server takes. */
const MAX_FIELD_MANAGER_CHARACTERS = 128;

/** Apply takes away what the same name said before and does not say again, so each says one thing. */
const FIELD_MANAGERS: { readonly status: string; readonly finalizer: string } = {
  status: FIELD_MANAGER,
  finalizer: 'weir-finalizer',
};

/**
 * In whose name a fleet writes the status of Services, and their finalizer. Fleets in one cluster differ by their class, and each may
 * take back only what it said itself: of a Service without class it cannot tell otherwise whether another fleet takes those.
 */
export function fieldManagerFor(
  loadBalancerClass: string = DEFAULT_FLEET_SETTINGS.loadBalancerClass,
  of: keyof typeof FIELD_MANAGERS = 'status',
): string {
  if (loadBalancerClass === DEFAULT_FLEET_SETTINGS.loadBalancerClass) return FIELD_MANAGERS[of];
  const prefix = `${FIELD_MANAGERS[of]}:`;
  return `${prefix}${loadBalancerClass.slice(-(MAX_FIELD_MANAGER_CHARACTERS - prefix.length))}`;
}
