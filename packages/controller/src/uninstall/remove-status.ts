import { backoffMs, type Clock, type Logger, wait } from '@weir/runtime';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { listPages } from '../kubernetes/list-pages.ts';
import { type ObservedPolicy, observedPolicyFor } from '../policies/policy-status-reconciler.ts';
import { hasStaleStatus, type ObservedService, observedServiceFor } from '../status/service-status.ts';
import { fieldManagerFor, type StatusPatch, StatusWriter } from '../status/status-writer.ts';

export interface StatusRemovalOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly loadBalancerClass: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly pageSize?: number;
}

const MAX_CONCURRENT_WRITES = 8;
/** Whoever edits a Service at that moment makes the write of its status meet another version: it is read again. */
const MAX_PASSES = 5;
const PASS_BACKOFF = { minMs: 100, maxMs: 2_000 };
const EMPTY_STATUS = { status: {}, fingerprint: '' } as const;
const EMPTY_FINALIZERS = { fingerprint: '' } as const;

type Target = Parameters<StatusWriter['write']>[0];

/** Addresses and conditions of Services, and what TenantPolicies say: whatever was written by this fleet, and nothing of others. */
export async function removeStatus(options: StatusRemovalOptions): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass);
  const writer = new StatusWriter({ ...options, fieldManager });
  const services = (raw: Json): Target | undefined => serviceTarget(raw, fieldManager);
  const policies = (raw: Json): Target | undefined => policyTarget(raw, fieldManager);
  const of = { ...options, writer, text: EMPTY_STATUS };
  await removeInPasses('status of Services', { ...of, path: '/api/v1/services', targetFor: services });
  await removeInPasses('status of TenantPolicies', {
    ...of,
    path: '/apis/weir.dev/v1alpha1/tenantpolicies',
    targetFor: policies,
  });
}

/** Of Services, also those that are being deleted and wait for it: nobody else would ever take it off. */
export async function removeFinalizers(options: StatusRemovalOptions): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass, 'finalizer');
  const writer = new StatusWriter({ ...options, fieldManager });
  const targetFor = (raw: Json): Target | undefined => {
    const facts = observedServiceFor(raw);
    return facts?.finalizerManagers.includes(fieldManager) ? targetOf(facts) : undefined;
  };
  await removeInPasses('finalizers of Services', {
    ...options,
    writer,
    text: EMPTY_FINALIZERS,
    path: '/api/v1/services',
    targetFor,
  });
}

interface StatusRemoval extends StatusRemovalOptions {
  readonly writer: StatusWriter;
  /** What is left of it. */
  readonly text: StatusPatch;
  readonly path: string;
  targetFor(raw: Json): Target | undefined;
}

async function removeInPasses(what: string, options: StatusRemoval): Promise<void> {
  const { clock, signal } = options;
  for (let pass = 1; ; pass++) {
    const { changed, refused } = await onePass(what, options);
    const left = changed + refused;
    if (left === 0) return;
    // What is refused is so the next time, too.
    if (changed === 0 || pass === MAX_PASSES)
      throw new Error(`${what}: ${left} still have what this fleet wrote there`);
    await wait(clock, backoffMs(pass, { ...PASS_BACKOFF, random: Math.random }), signal);
  }
}

interface PassResult {
  /** To be looked at again. */
  readonly changed: number;
  readonly refused: number;
}

async function onePass(what: string, passes: StatusRemoval): Promise<PassResult> {
  const { signal, log, path, writer, text, targetFor } = passes;
  const count = { done: 0, changed: 0, refused: 0 };
  for await (const page of listPages({ path }, passes)) {
    const targets = page.map(targetFor).filter((target) => target !== undefined);
    await forEachConcurrently(targets, { concurrency: MAX_CONCURRENT_WRITES, signal }, async (target) => {
      const { kind } = await writer.write(target, text);
      count[kind === 'changed' || kind === 'refused' ? kind : 'done'] += 1;
    });
    if (targets.length > 0) log.info({ ...count }, `${what} taken back`);
  }
  return count;
}

function serviceTarget(raw: Json, fieldManager: string): Target | undefined {
  // Lists leave the kind of their items out, and nothing else here needs it.
  const facts = observedServiceFor(raw);
  return facts !== undefined && hasStaleStatus(facts, fieldManager) ? targetOf(facts) : undefined;
}

function targetOf(facts: ObservedService): Target {
  const path = `/api/v1/namespaces/${facts.namespace}/services/${facts.name}`;
  return { ...facts, apiVersion: 'v1', kind: 'Service', path };
}

function policyTarget(raw: Json, fieldManager: string): Target | undefined {
  const facts: ObservedPolicy = observedPolicyFor(raw);
  const { managedFields = [] } = raw.metadata as { managedFields?: readonly { manager?: string }[] };
  if (facts.deleting || !managedFields.some(({ manager }) => manager === fieldManager)) return undefined;
  const path = `/apis/weir.dev/v1alpha1/tenantpolicies/${facts.name}`;
  return { ...facts, apiVersion: 'weir.dev/v1alpha1', kind: 'TenantPolicy', path };
}
