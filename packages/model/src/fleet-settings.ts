import { OPEN_POLICY } from './policy.ts';
import type { FleetSettings } from './snapshot.ts';

export const DEFAULT_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: OPEN_POLICY,
  reservedPorts: [],
  sharedPorts: [],
  nodesPerService: 2,
  trust: { kind: 'files' },
};
