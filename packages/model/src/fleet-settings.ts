import { UNRESTRICTED_POLICY } from './policy.ts';
import type { FleetSettings } from './snapshot.ts';

export const DEFAULT_FLEET_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: UNRESTRICTED_POLICY,
  reservedPorts: [],
  sharedPorts: [],
  nodesPerService: 2,
  trust: { kind: 'files' },
};
