import * as clocks from './checks/clocks.ts';
import * as controlPlane from './checks/control-plane.ts';
import * as nodes from './checks/nodes.ts';
import * as proxies from './checks/proxies.ts';
import * as services from './checks/services.ts';
import type { Facts } from './facts.ts';
import { CHECK_CODES, type CheckCode, type CheckResult, type Finding } from './finding.ts';

/** Returns one finding per check, in the order of `CHECK_CODES`. */
export function diagnose(facts: Facts): readonly Finding[] {
  return CHECK_CODES.map((code) => {
    const { subject, run } = CHECKS[code];
    return { code, subject: subject(facts), ...run(facts) };
  });
}

interface Check {
  subject(facts: Facts): string;
  run(facts: Facts): CheckResult;
}

const apiServerSubject = ({ server }: Facts): string =>
  server.kind === 'known' ? `API server ${server.value.server}` : 'API server';
const redisSubject = ({ redis }: Facts): string => (redis.kind === 'known' ? `Redis ${redis.value.where}` : 'Redis');
const nodesSubject = (): string => 'Nodes';
const servicesSubject = (): string => 'Services';
const proxiesSubject = (): string => 'Proxies';

const CHECKS: Readonly<Record<CheckCode, Check>> = {
  KubernetesVersion: { subject: apiServerSubject, run: controlPlane.kubernetesVersion },
  CustomResources: { subject: () => 'weir.dev/v1alpha1', run: controlPlane.customResources },
  ServiceRanges: { subject: () => 'Cluster IPs', run: controlPlane.serviceRanges },
  ControllerLeader: { subject: ({ fleet }) => `Fleet ${fleet}`, run: controlPlane.controllerLeader },
  LoadBalancingNodes: { subject: nodesSubject, run: nodes.loadBalancingNodes },
  NodesLeftOut: { subject: nodesSubject, run: nodes.nodesLeftOut },
  NodeAddresses: { subject: nodesSubject, run: nodes.nodeAddresses },
  NodePools: { subject: nodesSubject, run: nodes.nodePools },
  ProxySourceAddresses: { subject: nodesSubject, run: nodes.proxySourceAddresses },
  PublishedAddresses: { subject: servicesSubject, run: services.publishedAddresses },
  NodePorts: { subject: servicesSubject, run: services.nodePorts },
  EphemeralPorts: { subject: servicesSubject, run: services.ephemeralPorts },
  UntakenServices: { subject: servicesSubject, run: services.untakenServices },
  ApiServerClock: { subject: apiServerSubject, run: clocks.apiServerClock },
  RedisReachable: { subject: redisSubject, run: controlPlane.redisReachable },
  RedisVersion: { subject: redisSubject, run: controlPlane.redisVersion },
  RedisEviction: { subject: redisSubject, run: controlPlane.redisEviction },
  RedisMemory: { subject: redisSubject, run: controlPlane.redisMemory },
  RedisPersistence: { subject: redisSubject, run: controlPlane.redisPersistence },
  RedisClock: { subject: redisSubject, run: clocks.redisClock },
  ProxiesAlive: { subject: proxiesSubject, run: proxies.proxiesAlive },
  ProxyVersions: { subject: proxiesSubject, run: proxies.proxyVersions },
  ProxyPorts: { subject: proxiesSubject, run: proxies.proxyPorts },
  ProxyClocks: { subject: proxiesSubject, run: clocks.proxyClocks },
  KernelSettings: { subject: nodesSubject, run: proxies.kernelSettings },
};
