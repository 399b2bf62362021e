import type { Clock, Logger } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { SignIn } from '../access/sign-in.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { Sampler } from '../rates/sampler.ts';
import type { SuspensionWriter } from '../suspensions/suspension-writer.ts';

/** What the routes work with. */
export interface ConsoleParts {
  /** The name of the fleet. */
  readonly fleet: string;
  readonly store: Store;
  readonly watch: FleetWatch;
  readonly sampler: Sampler;
  readonly suspensions: SuspensionWriter;
  readonly signIn: SignIn;
  readonly clock: Clock;
  readonly log: Logger;
}
