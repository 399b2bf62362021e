// Tests Services on a cluster with real nodes (kubelets, containers, kube-proxy) while a tenant changes the Service under traffic.
import { after, before, describe } from 'node:test';
import { insideSandbox, requireProgram } from '@weir/tools';
import { type NodeFleet, startNodeFleet } from '../../src/cluster/node-fleet.ts';
import { nodePorts } from './node-ports.ts';
import { portsAndProtocols } from './ports-and-protocols.ts';
import { rollingUpdates } from './rolling-updates.ts';
import { scale } from './scale.ts';
import { sessionAffinity } from './session-affinity.ts';
import { sourceRanges } from './source-ranges.ts';
import { trafficPolicy } from './traffic-policy.ts';

const requirement = { ...requireProgram('redis', 'kubernetes', 'nodes'), ...insideSandbox() };

describe('Services on two real nodes', { ...requirement, timeout: 300_000 }, () => {
  let fleet: NodeFleet;
  before(async () => {
    fleet = await startNodeFleet();
  });
  after(() => fleet?.close());

  for (const scenarios of [
    portsAndProtocols,
    scale,
    sourceRanges,
    sessionAffinity,
    trafficPolicy,
    nodePorts,
    rollingUpdates,
  ]) {
    scenarios(() => fleet);
  }
});
