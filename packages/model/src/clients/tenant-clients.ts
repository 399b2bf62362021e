import { mergeTopClients, type TopClients } from './space-saving.ts';

/** The clients of one tenant with the most bytes and connections since a time. */
export interface TenantClients {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Received and sent bytes. */
  readonly bytes: TopClients;
  readonly connections: TopClients;
}

/** Merges what several workers or proxies have counted. `since` is the earliest of their times. */
export function mergeTenantClients(parts: readonly [TenantClients, ...TenantClients[]]): TenantClients {
  return {
    since: Math.min(...parts.map(({ since }) => since)),
    bytes: mergeTopClients(parts.map(({ bytes }) => bytes)),
    connections: mergeTopClients(parts.map(({ connections }) => connections)),
  };
}
