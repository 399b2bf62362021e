import type { Snapshot } from '../snapshot.ts';
import { isOwned } from '../translate/owned.ts';
import { FLEET_UNREACHABLE } from './condition.ts';
import type { ServiceView } from './service-view.ts';

/** What to say of the Services that Weir takes while nothing can be decided, because the store has not been reached since the start. */
export function storeUnreachableViewsFor({
  services,
  settings,
}: Pick<Snapshot, 'services' | 'settings'>): ServiceView[] {
  const { reason, message } = FLEET_UNREACHABLE;
  return services
    .filter((service) => isOwned(service, settings))
    .map(({ uid, namespace, name }) => ({
      uid,
      namespace,
      name,
      tenant: null,
      state: 'Pending',
      reason,
      message,
      addresses: [],
      ports: [],
      portErrors: [],
      endpoints: { ready: 0, total: 0 },
      conditions: [FLEET_UNREACHABLE],
    }));
}
