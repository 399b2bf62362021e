import { randomUUID } from 'node:crypto';
import { isInForce, type Suspension, suspendedByText } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { ApiError } from '../api/api-error.ts';
import { suspensionNameFor } from './suspension-object.ts';
import type { SuspensionRequest, SuspensionWriter } from './suspension-writer.ts';
import { alreadySuspendedError, releaseBy } from './suspension-writer.ts';

export interface StoreSuspensionWriterOptions {
  readonly suspensionStore: SuspensionStore;
  readonly clock: Clock;
}

/**
 * Creates a writer that writes Suspensions only to the store. This writer is used in standalone mode and while the API server is
 * unreachable.
 */
export function storeSuspensionWriter({ suspensionStore, clock }: StoreSuspensionWriterOptions): SuspensionWriter {
  return {
    async suspend(request) {
      const name = suspensionNameFor(request.target);
      const { suspensions } = await suspensionStore.read();
      const before = suspensions.find((suspension) => suspension.origin.kind === 'store' && suspension.name === name);
      const now = clock.now();
      if (before !== undefined && isInForce(before, now) && !mayReplace(before, request)) {
        throw alreadySuspendedError(name, `and was made ${suspendedByText(before)}`);
      }
      const suspension = suspensionForRequest(request, { name, before, now });
      await suspensionStore.put(suspension);
      return suspension;
    },
    async resume(suspension, requestedBy) {
      // The controller would put the entry back, because the Suspension object still exists.
      if (suspension.origin.kind === 'kubernetes') throw originIsKubernetesError(suspension);
      await suspensionStore.remove(suspension.uid, releaseBy(requestedBy, suspension));
    },
  };
}

/**
 * Whether a request may replace the Suspension `before`. True if the same user made it, if the request changes nothing, if it sets
 * `replace`, or if there is no authentication (`requestedBy` is null), because all users then count as one user.
 */
function mayReplace(before: Suspension, { requestedBy, replace, message, until }: SuspensionRequest): boolean {
  return (
    replace ||
    requestedBy === null ||
    before.madeBy === requestedBy ||
    (before.message === message && before.until === until)
  );
}

interface ExistingSuspension {
  readonly name: string;
  readonly before: Suspension | undefined;
  readonly now: number;
}

function suspensionForRequest(
  { target, message, until, requestedBy }: SuspensionRequest,
  { name, before, now }: ExistingSuspension,
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
    ...(requestedBy === null ? {} : { madeBy: requestedBy }),
  };
}

function originIsKubernetesError({ name }: Suspension): ApiError {
  const message = `Suspension "${name}" is a Kubernetes object, which a console without a kubeconfig cannot delete; use kubectl delete suspension ${name}, or start the console with KUBECONFIG`;
  return new ApiError('OriginIsKubernetes', message);
}
