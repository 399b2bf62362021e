import { randomUUID } from 'node:crypto';
import type { Cutoff } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { CutoffStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
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
      const cutoff = cutoffFrom(request, { name, before, now: clock.now() });
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
