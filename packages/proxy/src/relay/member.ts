import type { EndpointLoad } from '@weir/model/data-plane';
import type { Outcome } from '../counters/outcome.ts';
import type { Placed } from './members.ts';
import type { Deadlined } from './timeout-wheel.ts';

/** Something open that belongs to a Service: what a Suspension or the end of a drain severs, and what has a deadline. */
export interface Member extends Deadlined, Placed {
  /** The endpoint that it goes to. */
  readonly load: EndpointLoad | undefined;
  /** Ends it now. Once it has ended nothing happens. */
  end(outcome: Outcome): void;
  onExpired(): void;
  /** The endpoint that it goes to is none of the Service's any more, or fails its check. */
  onEndpointLeft(): void;
}
