import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { ApiError, type ApiErrorCode } from '../kubernetes/api-error.ts';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';

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
export interface StatusText {
  readonly status?: Json;
  readonly finalizers?: readonly string[];
  /** What the status says but for times: what was refused is not asked again in the same words. */
  readonly words: string;
}

export type StatusOutcome =
  | { readonly kind: 'written'; readonly object: Json }
  /** It changed meanwhile, and what was decided may not be right any more. */
  | { readonly kind: 'changed' }
  /** It does not exist any more, as the watch is about to tell. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'refused' };

/** Rights are given and resources are installed: what was refused is tried again, rarely. */
const ASK_AGAIN_MS = 10 * 60_000;

interface Refusal {
  readonly words: string;
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
  readonly #refused = new Map<string, Refusal>();
  readonly #missed = new Set<string>();

  constructor({ api, clock, log, fieldManager = FIELD_MANAGER }: StatusWriterOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
    this.#fieldManager = fieldManager;
  }

  /** Forgets the objects that are gone. */
  keepOnly(isThere: (uid: string) => boolean): void {
    for (const known of [this.#refused, this.#missed])
      for (const uid of known.keys()) if (!isThere(uid)) known.delete(uid);
  }

  /** Rejects when the API server is away. */
  async write(target: StatusTarget, { status, finalizers, words }: StatusText): Promise<StatusOutcome> {
    if (this.#isRefusedStill(target, words)) return { kind: 'refused' };
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
      this.#refused.delete(uid);
      this.#missed.delete(uid);
      return { kind: 'written', object };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      switch (error.code) {
        case 'CONFLICT':
          return { kind: 'changed' };
        case 'NOT_FOUND':
          // Once, it was deleted and the watch has still to tell. Again, its kind has no status: an older definition is installed.
          if (this.#missed.has(uid)) return this.#refuse(target, words, error);
          this.#missed.add(uid);
          return { kind: 'gone' };
        case 'FORBIDDEN':
        case 'REFUSED':
          return this.#refuse(target, words, error);
        default:
          throw error;
      }
    }
  }

  #isRefusedStill({ uid }: StatusTarget, words: string): boolean {
    const refusal = this.#refused.get(uid);
    return refusal?.words === words && this.#clock.monotonic() - refusal.at < ASK_AGAIN_MS;
  }

  #refuse({ kind, uid, namespace, name }: StatusTarget, words: string, error: ApiError): StatusOutcome {
    const level = this.#refused.get(uid)?.words === words ? 'debug' : 'error';
    this.#refused.set(uid, { words, at: this.#clock.monotonic() });
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    const help = HELP[error.code];
    this.#log[level]({ kind, object, reason: errorMessage(error), ...(help && { help }) }, 'a status was refused');
    return { kind: 'refused' };
  }
}

const HELP: { readonly [C in ApiErrorCode]?: string } = {
  NOT_FOUND:
    'install the custom resources of this version: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions',
  FORBIDDEN: 'grant what this version needs: helm upgrade, or by hand what charts/weir/rights/controller.yaml lists',
};
