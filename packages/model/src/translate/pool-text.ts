// How messages speak of the nodes of a pool.
import { DEFAULT_POOL } from '../policy.ts';

/** Why a Service is on no node of a pool, and what to do. */
export function noNodesMessage(pool: string | null): string {
  const isDefault = pool === null || pool === DEFAULT_POOL;
  const nodes = isDefault
    ? 'node with the label role=loadbalancer'
    : `node of pool "${pool}" (labels role=loadbalancer and weir.dev/pool=${pool})`;
  const command = `kubectl label node NAME role=loadbalancer${isDefault ? '' : ` weir.dev/pool=${pool}`}`;
  return `no ${nodes} takes this Service: there is none, or each is cordoned, without an address of its IP families or without a proxy that answers; ask the operator for one (${command})`;
}
