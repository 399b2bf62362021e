import type { Clock, Logger } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { Authenticator } from '../access/authenticator.ts';
import type { ProxyAdminAccess } from '../access-log/proxy-stream.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { RateSampler } from '../rates/rate-sampler.ts';
import type { SuspensionWriter } from '../suspensions/suspension-writer.ts';

/** The dependencies of all routes. */
export interface RouteContext {
  /** The name of the fleet. */
  readonly fleet: string;
  readonly store: Store;
  readonly watch: FleetWatch;
  readonly sampler: RateSampler;
  readonly suspensionWriter: SuspensionWriter;
  readonly authenticator: Authenticator;
  readonly proxyAdmin: ProxyAdminAccess;
  readonly clock: Clock;
  readonly log: Logger;
}
