import { backoffMs, type Clock, type Logger, wait } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { type PolicyFacts, policyFactsFor } from '../policy/policy-status.ts';
import { fieldManagerFor } from '../status/field-manager.ts';
import { forEachOf } from '../status/for-each-of.ts';
import { type ServiceFacts, serviceFactsFor } from '../status/service-facts.ts';
import { isLeftover } from '../status/service-status.ts';
import { type StatusText, StatusWriter } from '../status/status-writer.ts';
import { pagesOf } from './pages.ts';

export interface TakingBack {
  readonly api: Pick<KubeApi, 'request'>;
  readonly loadBalancerClass: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly pageSize?: number;
}

const WRITERS = 8;
/** Whoever edits a Service at that moment makes the write of its status meet another version: it is read again. */
const PASSES = 5;
const PAUSE_MS = { minMs: 100, maxMs: 2_000 };
const NO_STATUS = { status: {}, words: '' } as const;
const NO_FINALIZER = { words: '' } as const;

type Target = Parameters<StatusWriter['write']>[0];

/** Addresses and conditions of Services, and what TenantPolicies say: whatever was written by this fleet, and nothing of others. */
export async function takeBackStatus(options: TakingBack): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass);
  const writer = new StatusWriter({ ...options, fieldManager });
  const services = (raw: Json): Target | undefined => serviceTarget(raw, fieldManager);
  const policies = (raw: Json): Target | undefined => policyTarget(raw, fieldManager);
  const of = { ...options, writer, text: NO_STATUS };
  await passes('status of Services', { ...of, path: '/api/v1/services', targetFor: services });
  await passes('status of TenantPolicies', {
    ...of,
    path: '/apis/weir.dev/v1alpha1/tenantpolicies',
    targetFor: policies,
  });
}

/** Of Services, also those that are being deleted and wait for it: nobody else would ever take it off. */
export async function takeBackFinalizers(options: TakingBack): Promise<void> {
  const fieldManager = fieldManagerFor(options.loadBalancerClass, 'finalizer');
  const writer = new StatusWriter({ ...options, fieldManager });
  const targetFor = (raw: Json): Target | undefined => {
    const facts = serviceFactsFor(raw);
    return facts?.heldBy.includes(fieldManager) ? targetOf(facts) : undefined;
  };
  await passes('finalizers of Services', {
    ...options,
    writer,
    text: NO_FINALIZER,
    path: '/api/v1/services',
    targetFor,
  });
}

interface Passes extends TakingBack {
  readonly writer: StatusWriter;
  /** What is left of it. */
  readonly text: StatusText;
  readonly path: string;
  targetFor(raw: Json): Target | undefined;
}

async function passes(what: string, options: Passes): Promise<void> {
  const { clock, signal } = options;
  for (let pass = 1; ; pass++) {
    const { changed, refused } = await onePass(what, options);
    const left = changed + refused;
    if (left === 0) return;
    // What is refused is so the next time, too.
    if (changed === 0 || pass === PASSES) throw new Error(`${what}: ${left} still have what this fleet wrote there`);
    await wait(clock, backoffMs(pass, { ...PAUSE_MS, random: Math.random }), signal);
  }
}

interface Left {
  /** To be looked at again. */
  readonly changed: number;
  readonly refused: number;
}

async function onePass(what: string, passes: Passes): Promise<Left> {
  const { signal, log, path, writer, text, targetFor } = passes;
  const count = { done: 0, changed: 0, refused: 0 };
  for await (const page of pagesOf({ path }, passes)) {
    const targets = page.map(targetFor).filter((target) => target !== undefined);
    await forEachOf(targets, { at: WRITERS, signal }, async (target) => {
      const { kind } = await writer.write(target, text);
      count[kind === 'changed' || kind === 'refused' ? kind : 'done'] += 1;
    });
    if (targets.length > 0) log.info({ ...count }, `${what} taken back`);
  }
  return count;
}

function serviceTarget(raw: Json, fieldManager: string): Target | undefined {
  // Lists leave the kind of their items out, and nothing else here needs it.
  const facts = serviceFactsFor(raw);
  return facts !== undefined && isLeftover(facts, fieldManager) ? targetOf(facts) : undefined;
}

function targetOf(facts: ServiceFacts): Target {
  const path = `/api/v1/namespaces/${facts.namespace}/services/${facts.name}`;
  return { ...facts, apiVersion: 'v1', kind: 'Service', path };
}

function policyTarget(raw: Json, fieldManager: string): Target | undefined {
  const facts: PolicyFacts = policyFactsFor(raw);
  const { managedFields = [] } = raw.metadata as { managedFields?: readonly { manager?: string }[] };
  if (facts.deleting || !managedFields.some(({ manager }) => manager === fieldManager)) return undefined;
  const path = `/apis/weir.dev/v1alpha1/tenantpolicies/${facts.name}`;
  return { ...facts, apiVersion: 'weir.dev/v1alpha1', kind: 'TenantPolicy', path };
}
