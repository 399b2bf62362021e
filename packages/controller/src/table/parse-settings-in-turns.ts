import { setImmediate } from 'node:timers/promises';
import { type ServiceObject, serviceSettingsFor } from '@weir/model';
import type { Clock } from '@weir/runtime';

/** How long one turn of the event loop may parse settings. */
const MAX_TURN_MS = 10;

/**
 * Parses the settings of the Services that are new or have changed, so that the translation finds all settings parsed. Lets other work of
 * the event loop run every few milliseconds: thousands of Services with 10,000 source ranges take longer than a leader may wait to renew
 * its Lease.
 */
export async function parseSettingsInTurns(
  services: readonly ServiceObject[],
  clock: Pick<Clock, 'monotonic'>,
): Promise<void> {
  let end = clock.monotonic() + MAX_TURN_MS;
  for (const service of services) {
    serviceSettingsFor(service);
    if (clock.monotonic() < end) continue;
    await setImmediate();
    end = clock.monotonic() + MAX_TURN_MS;
  }
}
