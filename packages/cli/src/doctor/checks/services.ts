import type { Facts, ServiceFact } from '../facts.ts';
import { managedServices, serviceName } from '../facts.ts';
import { type CheckResult, error, joinList, notChecked, ok, pluralize, warning } from '../finding.ts';

export function publishedAddresses(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const ours = managedServices(services.value, facts);
  const caught = ours.filter(({ ingress }) => ingress.some(({ ip, ipMode }) => ip !== null && ipMode !== 'Proxy'));
  if (caught.length === 0) {
    const published = ours.filter(({ ingress }) => ingress.length > 0);
    return ok(`${pluralize(published.length, 'Service')} with an address, none of them without ipMode: Proxy`);
  }
  return error(
    `${joinList(caught.map(serviceName))}: an address is published without ipMode: Proxy, so kube-proxy catches it inside the cluster, past limits, accounting and cut-off; find out who else writes their status (kubectl get service NAME -o yaml --show-managed-fields)`,
  );
}

export function nodePorts(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const open = managedServices(services.value, facts).filter((service) => service.nodePorts.length > 0);
  if (open.length === 0) return ok('no Service that Weir takes has node ports');
  const told = open.map((service) => `${serviceName(service)} (${joinList(service.nodePorts.map(String), 3)})`);
  return warning(
    `${pluralize(open.length, 'Service')} can be reached by node ports, past limits, accounting and cut-off: ${joinList(told)}; set spec.allocateLoadBalancerNodePorts: false and clear the nodePort fields`,
  );
}

/** The default of `net.ipv4.ip_local_port_range`. */
const EPHEMERAL_PORTS = { from: 32_768, to: 60_999 } as const;

export function ephemeralPorts(facts: Facts): CheckResult {
  const { services } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const isEphemeral = (port: number): boolean => EPHEMERAL_PORTS.from <= port && port <= EPHEMERAL_PORTS.to;
  const asking = managedServices(services.value, facts).filter(({ ports }) => ports.some(isEphemeral));
  const range = `${EPHEMERAL_PORTS.from}-${EPHEMERAL_PORTS.to}`;
  if (asking.length === 0) return ok(`no Service that Weir takes asks for a port in ${range}`);
  const told = asking.map(
    (each) => `${serviceName(each)} (${joinList(each.ports.filter(isEphemeral).map(String), 3)})`,
  );
  return warning(
    `${pluralize(asking.length, 'Service')} with ports in ${range}, of which Linux gives one to each outgoing connection of a node: while it is in use, no proxy there can bind it (BindFailed): ${joinList(told)}; keep them free by net.ipv4.ip_local_reserved_ports on the nodes, or use ports below`,
  );
}

/** So young that whoever takes it may not have seen it. */
const NEW_SERVICE_GRACE_MS = 30_000;

export function untakenServices(facts: Facts): CheckResult {
  const { services, loadBalancerClass, now } = facts;
  if (services.kind === 'unknown') return notChecked(services);
  const waiting = services.value.filter((service) => isUntaken(service, now));
  const of = (isIt: (service: ServiceFact) => boolean): string[] => waiting.filter(isIt).map(serviceName);
  const ours = of((service) => service.loadBalancerClass === loadBalancerClass);
  const classless = of((service) => service.loadBalancerClass === null);
  const foreign = waiting
    .filter((service) => service.loadBalancerClass !== null && service.loadBalancerClass !== loadBalancerClass)
    .map((service) => `${serviceName(service)} (${service.loadBalancerClass})`);
  const told = [
    ours.length > 0 &&
      `of class ${loadBalancerClass}, but no controller has said anything of them (ControllerLeader): ${joinList(ours)}`,
    classless.length > 0 &&
      `of no class, so only a controller with WEIR_CLASSLESS=true takes them: ${joinList(classless)}; a class can only be given to a new Service`,
    foreign.length > 0 &&
      `of a class that is not ${loadBalancerClass}, and without an address from anybody else: ${joinList(foreign)}`,
  ].filter((text) => text !== false);
  if (told.length === 0)
    return ok(`${pluralize(services.value.length, 'Service')} of type LoadBalancer, none that nobody takes`);
  const message = `nobody takes ${pluralize(waiting.length, 'Service')} of type LoadBalancer: ${told.join('; ')}`;
  return ours.length > 0 ? error(message) : warning(message);
}

function isUntaken(service: ServiceFact, now: number): boolean {
  const { ignored, isDeleting, hasWeirCondition, ingress, createdAt } = service;
  const isYoung = createdAt !== null && now - createdAt < NEW_SERVICE_GRACE_MS;
  return !ignored && !isDeleting && !hasWeirCondition && ingress.length === 0 && !isYoung;
}
