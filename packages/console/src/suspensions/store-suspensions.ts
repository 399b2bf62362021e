import { randomUUID } from 'node:crypto';
import { type Cutoff, isInForce } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { CutoffStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { alreadySuspended } from './already-suspended.ts';
import { suspensionNameFor } from './suspension-name.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';

export interface StoreSuspensionsOptions {
  readonly cutoffs: CutoffStore;
  readonly clock: Clock;
}

/** Suspensions that only the store knows: standalone, or while the API server is away. */
export function storeSuspensions({ cutoffs, clock }: StoreSuspensionsOptions): SuspensionWriter {
  return {
    async suspend(request) {
      const name = suspensionNameFor(request.target);
      const { cutoffs: present } = await cutoffs.read();
      const before = present.find((cutoff) => cutoff.origin.kind === 'store' && cutoff.name === name);
      const now = clock.now();
      if (before !== undefined && isInForce(before, now) && !mayChange(before, request)) {
        throw alreadySuspended(name, 'and may be of somebody else: the store does not know who made it');
      }
      const cutoff = cutoffFrom(request, { name, before, now });
      await cutoffs.put(cutoff);
      return cutoff;
    },
    async resume(cutoff) {
      // Removed from the store alone it would be put back: its object stands.
      if (cutoff.origin.kind === 'kubernetes') throw outOfReach(cutoff);
      await cutoffs.remove(cutoff.uid);
    },
  };
}

/** Where nobody is asked who they are everybody is the same. */
function mayChange(before: Cutoff, { by, isReplacing, message, until }: SuspensionRequest): boolean {
  return isReplacing || by === null || (before.message === message && before.until === until);
}

interface Known {
  readonly name: string;
  readonly before: Cutoff | undefined;
  readonly now: number;
}

function cutoffFrom({ target, message, until }: SuspensionRequest, { name, before, now }: Known): Cutoff {
  return {
    uid: before?.uid ?? `request-${randomUUID()}`,
    name,
    target,
    message,
    until,
    reason: 'SuspendedByOperator',
    origin: { kind: 'store' },
    createdAt: before?.createdAt ?? now,
  };
}

function outOfReach({ name }: Cutoff): ApiError {
  const message = `Suspension "${name}" is an object of the cluster, which a console without a kubeconfig cannot delete; kubectl delete suspension ${name}, or start the console with KUBECONFIG`;
  return new ApiError('OriginIsKubernetes', message);
}
