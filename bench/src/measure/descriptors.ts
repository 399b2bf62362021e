import { readFileSync } from 'node:fs';

/** How many files a process that we start may have open: it inherits our limit, and Node and HAProxy raise theirs to the hard one. */
export function descriptorLimit(): number {
  return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
}

/** Reads the hard limit of `/proc/<pid>/limits`. */
export function parseDescriptorLimit(text: string): number {
  const [, hard] = /^Max open files\s+\S+\s+(\d+|unlimited)\s/m.exec(text) ?? [];
  if (hard === undefined) throw new Error(`not /proc/<pid>/limits: ${text.slice(0, 80)}`);
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

const RESERVED_DESCRIPTORS = 600;
/** Weir leaves a quarter to tenants who have not come yet. */
const MAX_TENANT_SHARE = 0.75;

/** How many idle connections of one tenant a proxy can have, which holds two descriptors of each. */
export function maxIdleConnections(limit: number): number {
  return Math.min(10_000, Math.floor((limit * MAX_TENANT_SHARE - RESERVED_DESCRIPTORS) / 2));
}
