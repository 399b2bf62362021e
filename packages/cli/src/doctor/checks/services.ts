import { joinList, pluralize } from '../../output/amounts.ts';
import type { Facts, ServiceFact } from '../facts.ts';
import { managedServices, serviceName } from '../facts.ts';
import { type CheckResult, error, notChecked, ok, warning } from '../finding.ts';

export function publishedAddresses(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const managed = managedServices(services.value, facts);
  const bypassing = managed.filter(({ ingress }) =>
    ingress.some(({ ip, ipMode }) => ip !== null && ipMode !== 'Proxy'),
  );
  if (bypassing.length === 0) {
    const published = managed.filter(({ ingress }) => ingress.length > 0);
    return ok(`${pluralize(published.length, 'Service')} with an address, all with ipMode: Proxy`);
  }
  return error(
    `${joinList(bypassing.map(serviceName))}: an address is published without ipMode: Proxy, so kube-proxy intercepts connections inside the cluster, and such connections bypass limits, accounting and cut-off; find the program that writes the status (kubectl get service NAME -o yaml --show-managed-fields)`,
  );
}

export function nodePorts(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const open = managedServices(services.value, facts).filter((service) => service.nodePorts.length > 0);
  if (open.length === 0) return ok('no Service of Weir has node ports');
  const serviceTexts = open.map((service) => `${serviceName(service)} (${joinList(service.nodePorts.map(String), 3)})`);
  return warning(
    `${pluralize(open.length, 'Service')} can be reached by node ports, which bypass limits, accounting and cut-off: ${joinList(serviceTexts)}; set spec.allocateLoadBalancerNodePorts: false and clear the nodePort fields`,
  );
}

/** The default range of the kernel setting `net.ipv4.ip_local_port_range`. */
const EPHEMERAL_PORTS = { from: 32_768, to: 60_999 } as const;

export function ephemeralPorts(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const isEphemeral = (port: number): boolean => EPHEMERAL_PORTS.from <= port && port <= EPHEMERAL_PORTS.to;
  const affected = managedServices(services.value, facts).filter(({ ports }) => ports.some(isEphemeral));
  const range = `${EPHEMERAL_PORTS.from}-${EPHEMERAL_PORTS.to}`;
  if (affected.length === 0) return ok(`no Service of Weir has a port in ${range}`);
  const serviceTexts = affected.map(
    (service) => `${serviceName(service)} (${joinList(service.ports.filter(isEphemeral).map(String), 3)})`,
  );
  return warning(
    `${pluralize(affected.length, 'Service')} with ports in ${range}: ${joinList(serviceTexts)}; Linux takes the source ports of outgoing connections from this range, and a proxy cannot bind a port that its node is using (BindFailed); reserve the ports with net.ipv4.ip_local_reserved_ports on the nodes, or use ports below ${EPHEMERAL_PORTS.from}`,
  );
}

/** Age up to which a Service is not reported, because a controller may not have seen the Service yet. */
const NEW_SERVICE_GRACE_MS = 30_000;

export function untakenServices(facts: Facts): CheckResult {
  const { services, loadBalancerClass, now } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const untaken = services.value.filter((service) => isUntaken(service, now));
  const ofClass = (className: string | null): string[] =>
    untaken.filter((service) => service.loadBalancerClass === className).map(serviceName);
  const ofThisClass = ofClass(loadBalancerClass);
  const ofNoClass = ofClass(null);
  const ofOtherClass = untaken
    .filter((service) => service.loadBalancerClass !== null && service.loadBalancerClass !== loadBalancerClass)
    .map((service) => `${serviceName(service)} (${service.loadBalancerClass})`);
  const groups = [
    ofThisClass.length > 0 &&
      `with class ${loadBalancerClass}, but without a condition from a controller (see ControllerLeader): ${joinList(ofThisClass)}`,
    ofNoClass.length > 0 &&
      `without a class (only a controller with WEIR_CLASSLESS=true serves such Services, and a class can be set only on a new Service): ${joinList(ofNoClass)}`,
    ofOtherClass.length > 0 &&
      `with a class other than ${loadBalancerClass}, and without an address: ${joinList(ofOtherClass)}`,
  ].filter((text) => text !== false);
  if (groups.length === 0)
    return ok(`${pluralize(services.value.length, 'Service')} of type LoadBalancer, each with a controller`);
  const message = `no controller serves ${pluralize(untaken.length, 'Service')} of type LoadBalancer: ${groups.join('; ')}`;
  return ofThisClass.length > 0 ? error(message) : warning(message);
}

function isUntaken(service: ServiceFact, now: number): boolean {
  const { ignored, isDeleting, hasWeirCondition, ingress, createdAt } = service;
  const isYoung = createdAt !== null && now - createdAt < NEW_SERVICE_GRACE_MS;
  return !ignored && !isDeleting && !hasWeirCondition && ingress.length === 0 && !isYoung;
}
