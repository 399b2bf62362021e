// The finalizer that tells tools that a load balancer is not cleaned up yet; Weir itself does not need it. It is written through
// `services/status`, as in Kubernetes' own controllers, so the controller needs no right to write a tenant's spec. Server-side
// apply with a separate field manager does not remove the same finalizer of another controller.
import { CLEANUP_FINALIZER, type ObservedService, statusTargetFor } from './service-status.ts';
import { fieldManagerFor, type StatusWriteOutcome, StatusWriter, type StatusWriterOptions } from './status-writer.ts';

export interface CleanupFinalizerOptions extends Omit<StatusWriterOptions, 'fieldManager'> {
  readonly loadBalancerClass?: string;
  /** Whether served Services get the finalizer; if not, it is only removed. */
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
   * Adds or removes the finalizer. `isServed`: whether the published table has the Service. Returns undefined if nothing was
   * written. Rejects if the API server is unreachable.
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
 * Decides whether to add or remove the finalizer. A Service that is being deleted loses it once the Service is not served, because
 * its ports are free then.
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
