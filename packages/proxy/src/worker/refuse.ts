import type { Grant } from '../admit/admit.ts';
import { countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { Arrived } from '../relay/arrived.ts';
import type { TcpStream } from '../tcp/transport.ts';
import type { RouteHome } from './route-home.ts';

/** What has its place under the limits. */
export interface Placed {
  readonly arrived: Arrived;
  readonly grant: Grant;
}

export function refuse(stream: TcpStream, row: Float64Array, outcome: Outcome): void {
  countOutcome(row, outcome);
  stream.reset();
}

/** One that had its place already. */
export function giveBack(
  stream: TcpStream,
  { group }: RouteHome,
  { grant, outcome }: { readonly grant: Grant; readonly outcome: Outcome },
): void {
  grant.release();
  refuse(stream, group.row, outcome);
}
