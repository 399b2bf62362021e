import { isIgnored, isOwned, type ServiceObject, type Snapshot, type Translation } from '@weir/model';
import { joinList, pluralize } from './amounts.ts';
import { toSingleLine } from './ansi.ts';

/** The Services of the manifests, by what Weir does with them. */
export interface ServiceCounts {
  /** All Services, including Services with mistakes that make them unusable. */
  readonly total: number;
  readonly served: number;
  /** Of `served`, the Services without an endpoint in use, which refuse every client. */
  readonly withoutEndpoints: number;
  readonly refused: number;
  /** Accepted Services for which the fleet has no node. */
  readonly withoutNodes: number;
  /** Services that are not read, because the manifest has a mistake. */
  readonly invalid: number;
  readonly withoutClass: number;
  readonly ofOtherClass: number;
  /** The classes of `ofOtherClass`, sorted. */
  readonly otherClasses: readonly string[];
  /** Services with the annotation `weir.dev/ignore: "true"`. */
  readonly ignored: number;
  /** Services whose type is not LoadBalancer. */
  readonly ofOtherType: number;
}

export function countServices(
  { services, settings }: Snapshot,
  { table, statuses, problems }: Translation,
): ServiceCounts {
  const others = services.filter((service) => !isOwned(service, settings));
  const [balancers, ofOtherType] = partition(others, ({ type }) => type === 'LoadBalancer');
  const [ignored, unowned] = partition(balancers, isIgnored);
  const [withoutClass, ofOtherClass] = partition(unowned, (service) => service.loadBalancerClass === null);
  const served = statuses.filter(({ nodes }) => nodes.length > 0);
  const notServed = statuses.filter(({ nodes }) => nodes.length === 0);
  const refused = notServed.filter(({ accepted }) => accepted.reason !== 'Accepted').length;
  const withEndpoints = new Set(
    [...table.entries.values()].flatMap((entry) =>
      entry.kind === 'endpoints' && entry.endpoints.length > 0 ? entry.service : [],
    ),
  );
  const known = new Set(services.map(({ namespace, name }) => `Service ${namespace}/${name}`));
  const invalid = new Set(
    problems.flatMap(({ code, severity, subject }) =>
      code === 'InvalidObject' && severity === 'error' && subject.startsWith('Service ') && !known.has(subject)
        ? subject
        : [],
    ),
  ).size;
  return {
    total: services.length + invalid,
    served: served.length,
    withoutEndpoints: served.filter(({ uid }) => !withEndpoints.has(uid)).length,
    refused,
    withoutNodes: notServed.length - refused,
    invalid,
    withoutClass: withoutClass.length,
    ofOtherClass: ofOtherClass.length,
    otherClasses: [...new Set(ofOtherClass.map(({ loadBalancerClass }) => loadBalancerClass ?? ''))].sort(),
    ignored: ignored.length,
    ofOtherType: ofOtherType.length,
  };
}

function partition(
  services: readonly ServiceObject[],
  isFirst: (service: ServiceObject) => boolean,
): [ServiceObject[], ServiceObject[]] {
  return [services.filter(isFirst), services.filter((service) => !isFirst(service))];
}

/** Returns one line such as `6 Services: 1 served, 5 name no class: add --classless`. */
export function serviceCountsText(counts: ServiceCounts): string {
  if (counts.total === 0) return '0 Services';
  const { served, withoutEndpoints, refused, withoutNodes, invalid, ofOtherType, ofOtherClass, ignored } = counts;
  const endpoints = withoutEndpoints > 0 ? ` (${withoutEndpoints} without a ready endpoint)` : '';
  const parts = [
    `${served} served${endpoints}`,
    ...(refused > 0 ? [`${refused} refused`] : []),
    ...(invalid > 0 ? [`${invalid} invalid`] : []),
    ...(withoutNodes > 0 ? [`${withoutNodes} without a node`] : []),
    ...(ofOtherClass > 0
      ? [`${ofOtherClass} ${name(ofOtherClass)} another class (${toSingleLine(joinList(counts.otherClasses))})`]
      : []),
    ...(ignored > 0 ? [`${ignored} ignored`] : []),
    ...(ofOtherType > 0 ? [`${ofOtherType} not of type LoadBalancer`] : []),
    ...(counts.withoutClass > 0
      ? [`${counts.withoutClass} ${name(counts.withoutClass)} no class: add --classless`]
      : []),
  ];
  return `${pluralize(counts.total, 'Service')}: ${parts.join(', ')}`;
}

function name(count: number): string {
  return count === 1 ? 'names' : 'name';
}
