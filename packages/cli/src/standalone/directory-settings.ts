import { DEFAULT_SETTINGS, type FleetSettings, isExcludedNode, isLabelledNode, type NodeObject } from '@weir/model';

/**
 * How a fleet of a directory is run. On a laptop one node is all there is, and no Service shall be called degraded for it: a
 * Service gets as many nodes as carry traffic at the start, and no more than the default.
 */
export function directorySettings(
  nodes: readonly NodeObject[],
  { classless, sharedPorts }: Pick<FleetSettings, 'classless' | 'sharedPorts'>,
): FleetSettings {
  const carrying = nodes.filter((node) => isLabelledNode(node) && !isExcludedNode(node)).length;
  const nodesPerService = Math.max(1, Math.min(carrying, DEFAULT_SETTINGS.nodesPerService));
  return { ...DEFAULT_SETTINGS, classless, sharedPorts, nodesPerService };
}
