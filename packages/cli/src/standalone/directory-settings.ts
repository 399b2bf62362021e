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

/** Adds the defaults. Throws `UsageError` if a port is both shared and reserved. */
export function resolveFleetOptions(options: Partial<FleetOptions>): FleetOptions {
  const { classless = false, sharedPorts = [], reservedPorts = [] } = options;
  const conflicting = reservedSharedPorts({ sharedPorts, reservedPorts });
  if (conflicting.length > 0) {
    throw new UsageError(
      `--shared-ports and --reserved-ports both contain ${conflicting.join(', ')}; use one of them for each port`,
    );
  }
  return { classless, sharedPorts, reservedPorts };
}

/**
 * The settings of a fleet that runs from a directory. A laptop has only one node, which must not make every Service
 * degraded, so nodesPerService is at most the number of usable nodes at the start.
 */
export function fleetSettingsFor(
  nodes: readonly NodeObject[],
  options: FleetOptions & Pick<FleetSettings, 'secretAccess'>,
): FleetSettings {
  const usableNodes = nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node)).length;
  const nodesPerService = Math.max(1, Math.min(usableNodes, DEFAULT_FLEET_SETTINGS.nodesPerService));
  return { ...DEFAULT_FLEET_SETTINGS, ...options, nodesPerService };
}
