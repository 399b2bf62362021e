import { backoffMs, type Clock, type Logger, wait } from '@weir/runtime';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import { type Json, type KubeApi, WEIR_API_PATH } from '../kubernetes/kube-api.ts';
import { listPages } from '../kubernetes/list-pages.ts';
import { observedPolicyFor, policyStatusTargetFor } from '../policies/policy-status-reconciler.ts';
import { hasStaleStatus, observedServiceFor, statusTargetFor } from '../status/service-status.ts';
import { fieldManagerFor, type StatusPatch, type StatusTarget, StatusWriter } from '../status/status-writer.ts';

export interface StatusRemovalOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly loadBalancerClass: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly pageSize?: number;
}

const MAX_CONCURRENT_WRITES = 8;
/** The maximum number of passes. The next pass reads an object again that was edited meanwhile, or whose write has failed. */
const MAX_PASSES = 5;
const PASS_BACKOFF = { minMs: 100, maxMs: 2_000 };
const EMPTY_STATUS = { status: {}, fingerprint: '' } as const;
const EMPTY_FINALIZERS = { fingerprint: '' } as const;

/** Removes the status that this fleet has written to Services and TenantPolicies. Fields of other field managers stay. */
export async function removeStatus(options: StatusRemovalOptions): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass);
  const writer = new StatusWriter({ ...options, fieldManager });
  const removal = { ...options, writer, patch: EMPTY_STATUS };
  await removeInPasses('status of Services', {
    ...removal,
    path: '/api/v1/services',
    targetFor: (raw) => serviceTarget(raw, fieldManager),
  });
  await removeInPasses('status of TenantPolicies', {
    ...removal,
    path: `${WEIR_API_PATH}/tenantpolicies`,
    targetFor: (raw) => policyTarget(raw, fieldManager),
  });
}

/**
 * Removes the finalizers of this fleet, even from Services that are being deleted, because no other controller would ever remove
 * these finalizers.
 */
export async function removeFinalizers(options: StatusRemovalOptions): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass, 'finalizer');
  const writer = new StatusWriter({ ...options, fieldManager });
  await removeInPasses('finalizers of Services', {
    ...options,
    writer,
    patch: EMPTY_FINALIZERS,
    path: '/api/v1/services',
    targetFor(raw) {
      const service = observedServiceFor(raw);
      return service?.finalizerManagers.includes(fieldManager) ? statusTargetFor(service) : undefined;
    },
  });
}

interface StatusRemoval extends StatusRemovalOptions {
  readonly writer: StatusWriter;
  readonly patch: StatusPatch;
  /** The path of the list to read. */
  readonly path: string;
  /** Returns the target of the removal; undefined if this fleet has written nothing to the object. */
  targetFor(raw: Json): StatusTarget | undefined;
}

async function removeInPasses(what: string, options: StatusRemoval): Promise<void> {
  const { clock, signal } = options;
  for (let pass = 1; ; pass++) {
    const { again, refused } = await runPass(what, options);
    const left = again + refused;
    if (left === 0) return;
    // Another pass would not help a refused write.
    if (again === 0 || pass === MAX_PASSES)
      throw new Error(`failed to remove the ${what}: ${left} objects still have fields that this fleet has written`);
    await wait(clock, backoffMs(pass, { ...PASS_BACKOFF, random: Math.random }), signal);
  }
}

/** The numbers of objects that still have what was to be removed. */
interface PassResult {
  /** Those that have changed meanwhile, and those whose write has failed. */
  readonly again: number;
  readonly refused: number;
}

async function runPass(what: string, removal: StatusRemoval): Promise<PassResult> {
  const { signal, log, path, writer, patch, targetFor } = removal;
  const counts = { done: 0, again: 0, refused: 0 };
  for await (const page of listPages({ path }, removal)) {
    const targets = page.map(targetFor).filter((target) => target !== undefined);
    await forEachConcurrently(targets, { concurrency: MAX_CONCURRENT_WRITES, signal }, async (target) => {
      const { kind } = await writer.write(target, patch);
      if (kind === 'conflict' || kind === 'failed') counts.again += 1;
      else counts[kind === 'refused' ? 'refused' : 'done'] += 1;
    });
    if (targets.length > 0) log.info({ ...counts }, `removed the ${what}`);
  }
  return counts;
}

function serviceTarget(raw: Json, fieldManager: string): StatusTarget | undefined {
  const service = observedServiceFor(raw);
  return service !== undefined && hasStaleStatus(service, fieldManager) ? statusTargetFor(service) : undefined;
}

function policyTarget(raw: Json, fieldManager: string): StatusTarget | undefined {
  const policy = observedPolicyFor(raw);
  const { managedFields = [] } = raw.metadata as { managedFields?: readonly { manager?: string }[] };
  const hasOurStatus = managedFields.some(({ manager }) => manager === fieldManager);
  return hasOurStatus && !policy.deleting ? policyStatusTargetFor(policy) : undefined;
}
