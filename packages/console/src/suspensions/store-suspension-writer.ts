import { randomUUID } from 'node:crypto';
import { isInForce, type Suspension } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { suspensionNameFor } from './suspension-object.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';
import { alreadySuspendedError } from './suspension-writer.ts';

export interface StoreSuspensionWriterOptions {
  readonly cutoffs: SuspensionStore;
  readonly clock: Clock;
}

/** Suspensions that only the store knows: standalone, or while the API server is away. */
export function storeSuspensionWriter({ cutoffs, clock }: StoreSuspensionWriterOptions): SuspensionWriter {
  return {
    async suspend(request) {
      const name = suspensionNameFor(request.target);
      const { suspensions: present } = await cutoffs.read();
      const before = present.find((cutoff) => cutoff.origin.kind === 'store' && cutoff.name === name);
      const now = clock.now();
      if (before !== undefined && isInForce(before, now) && !mayReplace(before, request)) {
        throw alreadySuspendedError(name, 'and may be of somebody else: the store does not know who made it');
      }
      const cutoff = cutoffForRequest(request, { name, before, now });
      await cutoffs.put(cutoff);
      return cutoff;
    },
    async resume(cutoff) {
      // Removed from the store alone it would be put back: its object stands.
      if (cutoff.origin.kind === 'kubernetes') throw originIsKubernetesError(cutoff);
      await cutoffs.remove(cutoff.uid);
    },
  };
}

/** Where nobody is asked who they are everybody is the same. */
function mayReplace(before: Suspension, { requestedBy, replace, message, until }: SuspensionRequest): boolean {
  return replace || requestedBy === null || (before.message === message && before.until === until);
}

interface CutoffContext {
  readonly name: string;
  readonly before: Suspension | undefined;
  readonly now: number;
}

function cutoffForRequest(
  { target, message, until }: SuspensionRequest,
  { name, before, now }: CutoffContext,
): Suspension {
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

function originIsKubernetesError({ name }: Suspension): ApiError {
  const message = `Suspension "${name}" is an object of the cluster, which a console without a kubeconfig cannot delete; kubectl delete suspension ${name}, or start the console with KUBECONFIG`;
  return new ApiError('OriginIsKubernetes', message);
}
