import * as clocks from './checks/clocks.ts';
import * as cluster from './checks/control-plane.ts';
import * as redis from './checks/control-plane.ts';
import * as nodes from './checks/nodes.ts';
import * as proxies from './checks/proxies.ts';
import * as services from './checks/services.ts';
import type { Facts } from './facts.ts';
import { CHECK_CODES, type CheckCode, type CheckResult, type Finding } from './finding.ts';

/** Takes what was seen, returns what is to be said of it: one finding of each check, in the order of `CHECK_CODES`. */
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
const redisSubject = ({ redis: seen }: Facts): string =>
  seen.kind === 'known' ? `Redis ${seen.value.where}` : 'Redis';
const nodesSubject = (): string => 'Nodes';
const servicesSubject = (): string => 'Services';
const proxiesSubject = (): string => 'Proxies';

const CHECKS: Readonly<Record<CheckCode, Check>> = {
  KubernetesVersion: { subject: apiServerSubject, run: cluster.kubernetesVersion },
  CustomResources: { subject: () => 'weir.dev/v1alpha1', run: cluster.customResources },
  ServiceRanges: { subject: () => 'Cluster IPs', run: cluster.serviceRanges },
  ControllerLeader: { subject: ({ fleet }) => `Fleet ${fleet}`, run: cluster.controllerLeader },
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
  RedisReachable: { subject: redisSubject, run: redis.redisReachable },
  RedisVersion: { subject: redisSubject, run: redis.redisVersion },
  RedisEviction: { subject: redisSubject, run: redis.redisEviction },
  RedisPersistence: { subject: redisSubject, run: redis.redisPersistence },
  RedisClock: { subject: redisSubject, run: clocks.redisClock },
  ProxiesAlive: { subject: proxiesSubject, run: proxies.proxiesAlive },
  ProxyVersions: { subject: proxiesSubject, run: proxies.proxyVersions },
  ProxyPorts: { subject: proxiesSubject, run: proxies.proxyPorts },
  ProxyClocks: { subject: proxiesSubject, run: clocks.proxyClocks },
  KernelSettings: { subject: nodesSubject, run: proxies.kernelSettings },
};
