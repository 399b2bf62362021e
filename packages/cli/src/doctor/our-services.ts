import type { Facts, ServiceFact } from './facts.ts';

/**
 * Services that Weir takes: those of its class, and those of which it has said something, as it does of Services without class
 * when the controller is classless.
 */
export function managedServices(
  services: readonly ServiceFact[],
  { loadBalancerClass }: Pick<Facts, 'loadBalancerClass'>,
): readonly ServiceFact[] {
  return services.filter(
    (service) => !service.ignored && (service.loadBalancerClass === loadBalancerClass || service.hasWeirCondition),
  );
}

export function serviceName({ namespace, name }: ServiceFact): string {
  return `${namespace}/${name}`;
}
