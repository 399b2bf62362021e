import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import { CONDITION_PREFIX, type IngressStatus, type ObservedService, type ServiceCondition } from './service-facts.ts';

/** What we say of a Service: the part of its status that is ours. */
export interface DesiredStatus {
  readonly ingress: readonly IngressStatus[];
  readonly conditions: readonly ServiceCondition[];
}

/** The status that a view asks for. A condition keeps its time as long as its status stays. `now`: milliseconds since the epoch. */
export function desiredStatusFor(view: ServiceView, facts: ObservedService, now: number): DesiredStatus {
  const ports = portsFor(view);
  return {
    // Proxy: else kube-proxy takes the address for one of its own, and our counters and cut-offs are bypassed.
    ingress: view.addresses.map((ip) => ({ ip, ipMode: 'Proxy', ports })),
    conditions: view.conditions.map((condition) => {
      const type = `${CONDITION_PREFIX}${condition.type}`;
      const before = facts.conditions.find((each) => each.type === type);
      const lastTransitionTime =
        before?.status === condition.status
          ? before.lastTransitionTime
          : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
      const { status, reason, message } = condition;
      return { type, status, reason, message, lastTransitionTime };
    }),
  };
}

/** Every port, because the list is for all or none. */
function portsFor(view: ServiceView): NonNullable<IngressStatus['ports']> {
  const ports = new Map<string, { port: number; protocol: string; error?: string }>();
  for (const { port, protocol } of view.ports) ports.set(`${port}/${protocol}`, { port, protocol });
  for (const { port, protocol, reason } of view.portErrors) {
    ports.set(`${port}/${protocol}`, { port, protocol, error: `${CONDITION_PREFIX}${reason}` });
  }
  return [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}

/** Whether the Service says just this already: then nothing is written. */
export function isStatusCurrent(status: DesiredStatus, facts: ObservedService): boolean {
  return (
    isDeepStrictEqual(status.ingress, facts.ingress) &&
    isDeepStrictEqual(byType(status.conditions), byType(facts.conditions))
  );
}

/**
 * A Service that left us and still exists carries what we said of it, which is not true any more. `fieldManager`: ours; what another
 * fleet says is its own.
 */
export function hasStaleStatus(
  { conditions, deleting, statusManagers }: ObservedService,
  fieldManager: string,
): boolean {
  return conditions.length > 0 && !deleting && statusManagers.includes(fieldManager);
}

function byType(conditions: readonly ServiceCondition[]): unknown {
  return conditions
    .map(({ type, status, reason, message, lastTransitionTime }) => [type, status, reason, message, lastTransitionTime])
    .sort();
}
