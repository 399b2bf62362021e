// Counters as they lie in the hashes of Redis: one field each, named by a letter, as decimal text.
import { type Counters, ZERO_COUNTERS } from '@weir/model/data-plane';
import type { FoldedIncarnation, UsageBase } from '../contract.ts';

const COUNTER_FIELDS: Readonly<Record<string, keyof Counters>> = {
  r: 'receivedBytes',
  s: 'sentBytes',
  c: 'connections',
  q: 'requests',
};

export function encodeCounters({ receivedBytes, sentBytes, connections, requests }: Counters): number[] {
  return [receivedBytes, sentBytes, connections, requests];
}

/** Out of `usage:sum`: by Service. */
export function decodeSums(hash: unknown): Map<string, Counters> {
  return countersByPrefix(hash as Record<string, string>);
}

/** Out of `usage:bases` of the node. */
export function decodeBases(node: string, hash: unknown): UsageBase[] {
  return [...countersByPrefix(hash as Record<string, string>)].map(([slot, counters]) => {
    const [life, service = '', ...tenant] = slot.split('/');
    return { service, tenant: tenant.join('/'), node, life: Number(life), counters };
  });
}

/** Out of `usage:folded`: by node. */
export function decodeFolded(hash: unknown): FoldedIncarnation[] {
  const lives = Object.entries(hash as Record<string, string>).map(([node, life]) => ({ node, life: Number(life) }));
  return lives.sort((a, b) => (a.node < b.node ? -1 : 1));
}

function countersByPrefix(hash: Readonly<Record<string, string>>): Map<string, Counters> {
  const found = new Map<string, Counters>();
  for (const [field, text] of Object.entries(hash)) {
    const colon = field.lastIndexOf(':');
    const counter = COUNTER_FIELDS[field.slice(colon + 1)];
    if (counter === undefined) continue;
    const prefix = field.slice(0, colon);
    found.set(prefix, { ...(found.get(prefix) ?? ZERO_COUNTERS), [counter]: Number(text) });
  }
  return found;
}
