// The finalizer by which tools know that a load balancer is still to be cleaned up. Weir itself needs none. It is written through
// `services/status`, as Kubernetes' own controllers do, so no right to a tenant's spec comes with it; and in a name of its own by
// server-side apply, so that who else put the same one there keeps it.

import { CLEANUP_FINALIZER, type ObservedService } from './service-status.ts';
import { fieldManagerFor, type StatusWriteOutcome, StatusWriter, type StatusWriterOptions } from './status-writer.ts';

export interface CleanupFinalizerOptions extends Omit<StatusWriterOptions, 'fieldManager'> {
  readonly loadBalancerClass?: string;
  /** Services that are served shall have it; else it is only taken off. */
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

  /** `isServed`: it is in the table that is in force. Undefined: there was nothing to do. Rejects when the API server is away. */
  async reconcile(
    facts: ObservedService,
    { isServed }: { readonly isServed: boolean },
  ): Promise<StatusWriteOutcome | undefined> {
    const isOurs = facts.finalizerManagers.includes(this.#fieldManager);
    const step = planFinalizer({ ...facts, isOurs, isServed, isWanted: this.#isWanted });
    if (step === undefined) return undefined;
    const target = { ...facts, apiVersion: 'v1', kind: 'Service', path: servicePath(facts) };
    return this.#writer.write(target, { finalizers: step === 'add' ? [CLEANUP_FINALIZER] : [], fingerprint: step });
  }

  keepOnly(isThere: (uid: string) => boolean): void {
    this.#writer.keepOnly(isThere);
  }
}

interface FinalizerInput extends Pick<ObservedService, 'type' | 'deleting'> {
  /** We put it there. */
  readonly isOurs: boolean;
  readonly isServed: boolean;
  readonly isWanted: boolean;
}

/** Nothing is put on what is being deleted, and from that it is taken when its ports are free. */
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

const servicePath = ({ namespace, name }: ObservedService): string =>
  `/api/v1/namespaces/${namespace}/services/${name}`;
