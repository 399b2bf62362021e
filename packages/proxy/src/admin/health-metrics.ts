// What Prometheus sees of endpoints and of their checks.
import type { ServiceEntry } from '@weir/model/data-plane';
import type { Metrics, Sample } from '@weir/runtime';
import type { HealthMonitor } from '../health/health-room.ts';
import type { TableDistributor } from '../table/table-room.ts';

export function addHealthMetrics(metrics: Metrics, health: HealthMonitor): void {
  metrics.collectCounter({
    name: 'weir_health_checks_total',
    help: 'Checks of endpoints that were answered, by what was found.',
    labels: ['result'],
    collect: () => {
      const { good, bad } = health.checkCounts;
      return [
        { labels: { result: 'good' }, value: good },
        { labels: { result: 'bad' }, value: bad },
      ];
    },
  });
  metrics.collectCounter({
    name: 'weir_health_checks_stretched_total',
    help: 'Checks that began later than asked for, because a proxy makes at most 500 a second (100 over TLS).',
    collect: () => [{ labels: {}, value: health.checkCounts.stretched }],
  });
}

type EndpointSample = Sample<'namespace' | 'service' | 'state'>;

/** Of the port that has the fewest to use: a Service works as well as its worst port. */
export function* endpointSamples({ matcher }: TableDistributor, health: HealthMonitor): Iterable<EndpointSample> {
  const fewest = new Map<
    string,
    { readonly service: ServiceEntry; readonly ready: number; readonly ejected: number }
  >();
  for (const route of matcher.routes.values()) {
    const { service, endpoints } = route;
    const ejected = health.countEjected(route);
    const ready = endpoints.length - ejected;
    const known = fewest.get(service.uid);
    if (known === undefined || known.ready > ready) fewest.set(service.uid, { service, ready, ejected });
  }
  for (const [uid, { service, ready, ejected }] of fewest) {
    const { namespace, name } = service;
    yield { labels: { namespace, service: name, state: 'ready' }, value: ready };
    yield { labels: { namespace, service: name, state: 'ejected' }, value: ejected };
    yield { labels: { namespace, service: name, state: 'draining' }, value: health.draining.countOf(uid) };
  }
}
