// Whether a Service may go from the hosts that it has on shared ports to those that it asks for. All of them or none: half of
// what was asked for would lead clients to nobody.
import type { RefusalReason } from '../reason.ts';
import type { TlsTermination } from '../settings/service-settings.ts';
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { Verdict } from '../table/entry.ts';
import type { Nodes } from './nodes.ts';
import { portKey } from './port-key.ts';
import { modesFor, modesOf, notAllowedHosts, takenHosts, unnamedRefusal } from './shared-ports.ts';
import type { TakenPorts } from './taken-ports.ts';
import type { Tenant } from './tenancy.ts';

export interface ClaimContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenant: Tenant;
  readonly taken: TakenPorts;
  readonly holderText: (uid: string) => string;
}

export interface HostWish {
  readonly hosts: readonly string[];
  readonly tls: TlsTermination | undefined;
  readonly pool: string;
}

/** Why not; whether hosts are free on ports that it does not have yet, its placement will tell. */
export function hostRefusal(
  service: ServiceObject,
  { hosts, tls, pool }: HostWish,
  { fleet, nodes, tenant, taken, holderText }: ClaimContext,
): Verdict<RefusalReason> | undefined {
  const listeners = taken.listenersOf(service.uid);
  const has = modesOf(listeners);
  const modes = modesFor(service, { fleet, hosts, tls, listeners, isGranted: true });
  const unnamed = service.ports.find((port) => modes.get(port) === 'alone' && has.get(portKey(port)) === 'shared');
  if (unnamed !== undefined) return unnamedRefusal(unnamed, tenant);
  const shared = service.ports.filter((port) => modes.get(port) === 'shared');
  if (shared.length === 0) return undefined;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const pools = new Set([pool, ...listeners.flatMap(({ node }) => poolOf(node) ?? [])]);
  const question = { service, hosts, taken, pools, poolOf, holderText };
  const held = shared.filter((port) => has.has(portKey(port)));
  return (
    notAllowedHosts(hosts, tenant) ??
    held.map((port) => takenHosts(port, question)).find((refusal) => refusal !== undefined)
  );
}
