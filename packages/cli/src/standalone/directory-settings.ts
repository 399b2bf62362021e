import {
  DEFAULT_FLEET_SETTINGS,
  type FleetSettings,
  isExcludedNode,
  isLoadBalancerNode,
  type NodeObject,
  reservedSharedPorts,
} from '@weir/model';
import { UsageError } from '@weir/runtime';

/** The fleet settings that the command line can set. */
export type FleetOptions = Pick<FleetSettings, 'classless' | 'sharedPorts' | 'reservedPorts'>;

/** Returns the options with defaults for missing options. Throws `UsageError` if a port is both shared and reserved. */
export function resolveFleetOptions(options: Partial<FleetOptions>): FleetOptions {
  const { classless = false, sharedPorts = [], reservedPorts = [] } = options;
  const conflicting = reservedSharedPorts({ sharedPorts, reservedPorts });
  if (conflicting.length > 0) {
    throw new UsageError(
      `--shared-ports and --reserved-ports both contain ${conflicting.join(', ')}; list each port in only one of the two`,
    );
  }
  return { classless, sharedPorts, reservedPorts };
}

/**
 * Returns the settings of a fleet that runs from a directory. Limits `nodesPerService` to the number of usable nodes at the start. Without
 * this limit, every Service would be degraded on a machine with one node.
 */
export function fleetSettingsFor(
  nodes: readonly NodeObject[],
  options: FleetOptions & Pick<FleetSettings, 'secretAccess'>,
): FleetSettings {
  const usableNodes = nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node)).length;
  const nodesPerService = Math.max(1, Math.min(usableNodes, DEFAULT_FLEET_SETTINGS.nodesPerService));
  return { ...DEFAULT_FLEET_SETTINGS, ...options, nodesPerService };
}
