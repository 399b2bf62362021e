// What Prometheus sees of endpoints and of their checks.
import type { Metrics, Sample } from '@weir/runtime';
import type { HealthRoom } from '../health/health-room.ts';
import type { TableRoom } from '../table/table-room.ts';

export function addHealthMetrics(metrics: Metrics, health: HealthRoom): void {
  metrics.collectCounter({
    name: 'weir_health_checks_total',
    help: 'Checks of endpoints that were answered, by what was found.',
    labels: ['result'],
    collect: () => {
      const { good, bad } = health.checks;
      return [
        { labels: { result: 'good' }, value: good },
        { labels: { result: 'bad' }, value: bad },
      ];
    },
  });
  metrics.collectCounter({
    name: 'weir_health_checks_stretched_total',
    help: 'Checks that began later than asked for, because a proxy makes at most 500 a second.',
    collect: () => [{ labels: {}, value: health.checks.stretched }],
  });
}

type EndpointSample = Sample<'namespace' | 'service' | 'state'>;

/** Of the port that has the fewest to use: a Service works as well as its worst port. */
export function endpointSamples({ matcher }: TableRoom, health: HealthRoom): EndpointSample[] {
  const fewest = new Map<string, { readonly ready: number; readonly samples: readonly EndpointSample[] }>();
  for (const route of matcher.routes.values()) {
    const { service, endpoints } = route;
    const ejected = health.leftOutOf(route);
    const ready = endpoints.length - ejected;
    const known = fewest.get(service.uid);
    if (known !== undefined && known.ready <= ready) continue;
    const sample = (state: string, value: number): EndpointSample => ({
      labels: { namespace: service.namespace, service: service.name, state },
      value,
    });
    const draining = health.departed.of(service.uid);
    fewest.set(service.uid, {
      ready,
      samples: [sample('ready', ready), sample('ejected', ejected), sample('draining', draining)],
    });
  }
  return [...fewest.values()].flatMap(({ samples }) => samples);
}
