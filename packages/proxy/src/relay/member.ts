import type { EndpointStats } from '@weir/model/data-plane';
import type { Outcome } from '../counters/outcome.ts';
import type { IndexedEntry } from './members.ts';
import type { WheelEntry } from './timeout-wheel.ts';

/** Something open that belongs to a Service: what a Suspension or the end of a drain severs, and what has a deadline. */
export interface Session extends WheelEntry, IndexedEntry {
  /** The endpoint that it goes to. */
  readonly endpointStats: EndpointStats | undefined;
  /** Ends it now. Once it has ended nothing happens. */
  end(outcome: Outcome): void;
  onExpired(): void;
  /** The endpoint that it goes to is none of the Service's any more, or fails its check. */
  onEndpointUnavailable(): void;
}
