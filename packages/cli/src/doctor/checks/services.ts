import type { Facts, ServiceFact } from '../facts.ts';
import { error, ok, unchecked, type Verdict, warning } from '../finding.ts';
import { counted, listed } from '../listed.ts';
import { nameOf, ourServices } from '../our-services.ts';

export function publishedAddresses(facts: Facts): Verdict {
  const { services } = facts;
  if (services.kind === 'unknown') return unchecked(services);
  const ours = ourServices(services.value, facts);
  const caught = ours.filter(({ ingress }) => ingress.some(({ ip, ipMode }) => ip !== null && ipMode !== 'Proxy'));
  if (caught.length === 0) {
    const published = ours.filter(({ ingress }) => ingress.length > 0);
    return ok(`${counted(published.length, 'Service')} with an address, none of them without ipMode: Proxy`);
  }
  return error(
    `${listed(caught.map(nameOf))}: an address is published without ipMode: Proxy, so kube-proxy catches it inside the cluster, past limits, accounting and cut-off; find out who else writes their status (kubectl get service NAME -o yaml --show-managed-fields)`,
  );
}

export function nodePorts(facts: Facts): Verdict {
  const { services } = facts;
  if (services.kind === 'unknown') return unchecked(services);
  const open = ourServices(services.value, facts).filter((service) => service.nodePorts.length > 0);
  if (open.length === 0) return ok('no Service that Weir takes has node ports');
  const told = open.map((service) => `${nameOf(service)} (${listed(service.nodePorts.map(String), 3)})`);
  return warning(
    `${counted(open.length, 'Service')} can be reached by node ports, past limits, accounting and cut-off: ${listed(told)}; set spec.allocateLoadBalancerNodePorts: false and clear the nodePort fields`,
  );
}

/** The default of `net.ipv4.ip_local_port_range`. */
const EPHEMERAL = { from: 32_768, to: 60_999 } as const;

export function ephemeralPorts(facts: Facts): Verdict {
  const { services } = facts;
  if (services.kind === 'unknown') return unchecked(services);
  const isEphemeral = (port: number): boolean => EPHEMERAL.from <= port && port <= EPHEMERAL.to;
  const asking = ourServices(services.value, facts).filter(({ ports }) => ports.some(isEphemeral));
  const range = `${EPHEMERAL.from}-${EPHEMERAL.to}`;
  if (asking.length === 0) return ok(`no Service that Weir takes asks for a port in ${range}`);
  const told = asking.map((each) => `${nameOf(each)} (${listed(each.ports.filter(isEphemeral).map(String), 3)})`);
  return warning(
    `${counted(asking.length, 'Service')} with ports in ${range}, of which Linux gives one to each outgoing connection of a node: while it is in use, no proxy there can bind it (BindFailed): ${listed(told)}; keep them free by net.ipv4.ip_local_reserved_ports on the nodes, or use ports below`,
  );
}

/** So young that whoever takes it may not have seen it. */
const YOUNG_MS = 30_000;

export function untakenServices(facts: Facts): Verdict {
  const { services, loadBalancerClass, now } = facts;
  if (services.kind === 'unknown') return unchecked(services);
  const waiting = services.value.filter((service) => isUntaken(service, now));
  const of = (isIt: (service: ServiceFact) => boolean): string[] => waiting.filter(isIt).map(nameOf);
  const ours = of((service) => service.loadBalancerClass === loadBalancerClass);
  const classless = of((service) => service.loadBalancerClass === null);
  const foreign = waiting
    .filter((service) => service.loadBalancerClass !== null && service.loadBalancerClass !== loadBalancerClass)
    .map((service) => `${nameOf(service)} (${service.loadBalancerClass})`);
  const told = [
    ours.length > 0 &&
      `of class ${loadBalancerClass}, but no controller has said anything of them (ControllerLeader): ${listed(ours)}`,
    classless.length > 0 &&
      `of no class, so only a controller with WEIR_CLASSLESS=true takes them: ${listed(classless)}; a class can only be given to a new Service`,
    foreign.length > 0 &&
      `of a class that is not ${loadBalancerClass}, and without an address from anybody else: ${listed(foreign)}`,
  ].filter((text) => text !== false);
  if (told.length === 0)
    return ok(`${counted(services.value.length, 'Service')} of type LoadBalancer, none that nobody takes`);
  const message = `nobody takes ${counted(waiting.length, 'Service')} of type LoadBalancer: ${told.join('; ')}`;
  return ours.length > 0 ? error(message) : warning(message);
}

function isUntaken(service: ServiceFact, now: number): boolean {
  const { ignored, isDeleting, hasWeirCondition, ingress, createdAt } = service;
  const isYoung = createdAt !== null && now - createdAt < YOUNG_MS;
  return !ignored && !isDeleting && !hasWeirCondition && ingress.length === 0 && !isYoung;
}
