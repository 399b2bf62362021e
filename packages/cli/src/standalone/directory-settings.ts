import {
  DEFAULT_FLEET_SETTINGS,
  type FleetSettings,
  isExcludedNode,
  isLoadBalancerNode,
  type NodeObject,
  reservedSharedPorts,
} from '@weir/model';
import { UsageError } from '@weir/runtime';

/** What of a fleet's settings the command line says. */
export type FleetOptions = Pick<FleetSettings, 'classless' | 'sharedPorts' | 'reservedPorts'>;

/** With what was left out. Throws `UsageError` when they contradict each other. */
export function resolveFleetOptions(options: Partial<FleetOptions>): FleetOptions {
  const { classless = false, sharedPorts = [], reservedPorts = [] } = options;
  const both = reservedSharedPorts({ sharedPorts, reservedPorts });
  if (both.length > 0) {
    throw new UsageError(
      `--shared-ports and --reserved-ports both have ${both.join(', ')}; use one of them for each port`,
    );
  }
  return { classless, sharedPorts, reservedPorts };
}

/**
 * How a fleet of a directory is run. On a laptop one node is all there is, and no Service shall be called degraded for it: a
 * Service gets as many nodes as carry traffic at the start, and no more than the default.
 */
export function fleetSettingsFor(
  nodes: readonly NodeObject[],
  options: FleetOptions & Pick<FleetSettings, 'secretAccess'>,
): FleetSettings {
  const carrying = nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node)).length;
  const nodesPerService = Math.max(1, Math.min(carrying, DEFAULT_FLEET_SETTINGS.nodesPerService));
  return { ...DEFAULT_FLEET_SETTINGS, ...options, nodesPerService };
}
