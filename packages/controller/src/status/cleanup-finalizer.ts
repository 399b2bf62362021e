// Adds and removes the finalizer that shows tools that a load balancer is not cleaned up yet. Weir itself does not need the
// finalizer. The finalizer is written through `services/status`, as in Kubernetes' own controllers, so the controller needs no
// permission to write a tenant's `spec`. Removal by server-side apply with a separate field manager keeps a finalizer that another
// controller has added too.
import { CLEANUP_FINALIZER, type ObservedService, statusTargetFor } from './service-status.ts';
import { fieldManagerFor, type StatusWriteOutcome, StatusWriter, type StatusWriterOptions } from './status-writer.ts';

export interface CleanupFinalizerOptions extends Omit<StatusWriterOptions, 'fieldManager'> {
  readonly loadBalancerClass?: string;
  /** Whether served Services get the finalizer. If false, the finalizer is only removed. */
  readonly isWanted: boolean;
}

export class CleanupFinalizer {
  readonly #isWanted: boolean;
  readonly #fieldManager: string;
  readonly #writer: StatusWriter;

  constructor(options: CleanupFinalizerOptions) {
    this.#isWanted = options.isWanted;
    this.#fieldManager = fieldManagerFor(options.loadBalancerClass, 'finalizer');
    this.#writer = new StatusWriter({ ...options, fieldManager: this.#fieldManager });
  }

  /**
   * Adds or removes the finalizer of a Service. `isServed` says whether the published table contains the Service. Returns undefined
   * if nothing was written. Rejects if the API server is unreachable.
   */
  async reconcile(
    service: ObservedService,
    { isServed }: { readonly isServed: boolean },
  ): Promise<StatusWriteOutcome | undefined> {
    const isOurs = service.finalizerManagers.includes(this.#fieldManager);
    const step = planFinalizer({ ...service, isOurs, isServed, isWanted: this.#isWanted });
    if (step === undefined) return undefined;
    const finalizers = step === 'add' ? [CLEANUP_FINALIZER] : [];
    return this.#writer.write(statusTargetFor(service), { finalizers, fingerprint: step });
  }

  /** Forgets the Services whose UID does not exist any more. */
  keepOnly(exists: (uid: string) => boolean): void {
    this.#writer.keepOnly(exists);
  }
}

interface FinalizerInput extends Pick<ObservedService, 'type' | 'deleting'> {
  /** Whether this fleet has added the finalizer. */
  readonly isOurs: boolean;
  readonly isServed: boolean;
  readonly isWanted: boolean;
}

/**
 * Decides whether to add or remove the finalizer. A deleted Service keeps the finalizer until the Service is no longer served,
 * because only then its ports are free.
 */
export function planFinalizer({
  type,
  deleting,
  isOurs,
  isServed,
  isWanted,
}: FinalizerInput): 'add' | 'remove' | undefined {
  if (isOurs) return isWanted && isServed ? undefined : 'remove';
  return isWanted && isServed && !deleting && type === 'LoadBalancer' ? 'add' : undefined;
}
