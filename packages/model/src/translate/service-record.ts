import { DEFAULT_POOL } from '../policy.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { Entry } from '../table/entry.ts';
import type { Decision } from './decision.ts';
import { exclusivePortsOf, type ServedPortNames, type ServiceAllocation, servedPortNames } from './held.ts';
import type { Nodes } from './nodes.ts';
import type { Membership } from './tenancy.ts';

/** All that is known of one Service that Weir takes, and what was last decided about it. */
export interface ServiceRecord {
  readonly uid: string;
  service: ServiceObject;
  /** What serves on while the present wish is refused. */
  allocation: ServiceAllocation | undefined;
  /** Undefined: not decided yet. */
  membership: Membership | undefined;
  decision: Decision | undefined;
  /** Of the decision. */
  tenant: string | null;
  /** As they were served last. */
  servedPortNames: ServedPortNames;
  /** Its part of the table. */
  entries: readonly Entry[];
}

/** What serves on, whatever it asks for next; undefined: it was given nothing. */
export function allocationOf({ decision }: ServiceRecord): ServiceAllocation | undefined {
  if (decision === undefined || decision.settings === null || decision.tenant === null) return undefined;
  const { settings, tenant, pool, ports, certificate } = decision;
  return {
    settings,
    tenant,
    pool: pool ?? DEFAULT_POOL,
    ports: servedPortNames(ports),
    exclusivePorts: exclusivePortsOf(ports),
    certificate,
  };
}

/** It did not get all that it asks for, or is on a node in whose place it would have another, and might when somebody gives something up. */
export function hasUnmetDemand({ decision }: ServiceRecord, { lost }: Pick<Nodes, 'lost'>): boolean {
  if (decision === undefined) return false;
  return (
    decision.settings === null ||
    decision.nodes.some((node) => lost.has(node)) ||
    decision.accepted.reason !== 'Accepted' ||
    decision.ports.some(({ error }) => error !== null) ||
    decision.degraded.some(({ reason }) => reason === 'FewerNodes')
  );
}
