import * as clocks from './checks/clocks.ts';
import * as cluster from './checks/cluster.ts';
import * as nodes from './checks/nodes.ts';
import * as proxies from './checks/proxies.ts';
import * as redis from './checks/redis.ts';
import * as services from './checks/services.ts';
import type { Facts } from './facts.ts';
import { CHECK_CODES, type CheckCode, type Finding, type Verdict } from './finding.ts';

/** Takes what was seen, returns what is to be said of it: one finding of each check, in the order of `CHECK_CODES`. */
export function diagnose(facts: Facts): readonly Finding[] {
  return CHECK_CODES.map((code) => {
    const { subject, judge } = CHECKS[code];
    return { code, subject: subject(facts), ...judge(facts) };
  });
}

interface Check {
  subject(facts: Facts): string;
  judge(facts: Facts): Verdict;
}

const API_SERVER = ({ server }: Facts): string =>
  server.kind === 'known' ? `API server ${server.value.server}` : 'API server';
const REDIS = ({ redis: seen }: Facts): string => (seen.kind === 'known' ? `Redis ${seen.value.where}` : 'Redis');
const NODES = (): string => 'Nodes';
const SERVICES = (): string => 'Services';
const PROXIES = (): string => 'Proxies';

const CHECKS: Readonly<Record<CheckCode, Check>> = {
  KubernetesVersion: { subject: API_SERVER, judge: cluster.kubernetesVersion },
  CustomResources: { subject: () => 'weir.dev/v1alpha1', judge: cluster.customResources },
  ServiceRanges: { subject: () => 'Cluster IPs', judge: cluster.serviceRanges },
  ControllerLeader: { subject: ({ fleet }) => `Fleet ${fleet}`, judge: cluster.controllerLeader },
  LoadBalancingNodes: { subject: NODES, judge: nodes.loadBalancingNodes },
  NodesLeftOut: { subject: NODES, judge: nodes.nodesLeftOut },
  NodeAddresses: { subject: NODES, judge: nodes.nodeAddresses },
  NodePools: { subject: NODES, judge: nodes.nodePools },
  ProxySourceAddresses: { subject: NODES, judge: nodes.proxySourceAddresses },
  PublishedAddresses: { subject: SERVICES, judge: services.publishedAddresses },
  NodePorts: { subject: SERVICES, judge: services.nodePorts },
  EphemeralPorts: { subject: SERVICES, judge: services.ephemeralPorts },
  UntakenServices: { subject: SERVICES, judge: services.untakenServices },
  ApiServerClock: { subject: API_SERVER, judge: clocks.apiServerClock },
  RedisReachable: { subject: REDIS, judge: redis.redisReachable },
  RedisVersion: { subject: REDIS, judge: redis.redisVersion },
  RedisEviction: { subject: REDIS, judge: redis.redisEviction },
  RedisPersistence: { subject: REDIS, judge: redis.redisPersistence },
  RedisClock: { subject: REDIS, judge: clocks.redisClock },
  ProxiesAlive: { subject: PROXIES, judge: proxies.proxiesAlive },
  ProxyVersions: { subject: PROXIES, judge: proxies.proxyVersions },
  ProxyPorts: { subject: PROXIES, judge: proxies.proxyPorts },
  ProxyClocks: { subject: PROXIES, judge: clocks.proxyClocks },
  KernelSettings: { subject: NODES, judge: proxies.kernelSettings },
};
