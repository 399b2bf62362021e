import type { Load } from '../comparison/load.ts';
import type { RelayChecks } from '../comparison/measured-subject.ts';
import { keepAliveRequests, oneConnectionPerRequest, oneStream, udpRoundTrips } from '../l4/loads.ts';
import { RELAY_CHECKS } from '../l4/relay-checks.ts';
import { keptRequests } from '../l7/loads.ts';
import type { CostScenarioName } from './options.ts';
import type { CostBackend } from './subjects.ts';

/** A load, and how long it runs before its first round, because Node compiles hot code during this time. */
export type CostLoad = Load<CostBackend> & { readonly warmUpSeconds: number };

/** How long a load runs before its first round. The three subjects share a processor, so each of them gets a third of this time. */
const WARM_UP_SECONDS = 30;
/** After 30 seconds, Node is still compiling code that runs once per connection. */
const CONNECTIONS_WARM_UP_SECONDS = 90;
/** Enough for a load with little code, or with the same code as the load before. */
const SHORT_WARM_UP_SECONDS = 9;

export const COST_LOADS: Readonly<Record<CostScenarioName, CostLoad>> = {
  requests: { ...keepAliveRequests, title: 'TCP, kept connections', backend: 'tcp', warmUpSeconds: WARM_UP_SECONDS },
  connections: {
    ...oneConnectionPerRequest,
    title: 'TCP, one connection per request',
    backend: 'tcp',
    warmUpSeconds: CONNECTIONS_WARM_UP_SECONDS,
  },
  stream: {
    ...oneStream,
    title: 'TCP, one stream',
    backend: 'stream',
    warmUpSeconds: SHORT_WARM_UP_SECONDS,
  },
  http: { ...keptRequests, title: 'HTTP/1.1, kept connections', backend: 'http', warmUpSeconds: WARM_UP_SECONDS },
  udp: { ...udpRoundTrips, backend: 'datagrams', warmUpSeconds: SHORT_WARM_UP_SECONDS },
};

export const COST_RELAY_CHECKS: RelayChecks<CostBackend> = {
  tcp: RELAY_CHECKS.http,
  stream: RELAY_CHECKS.stream,
  http: RELAY_CHECKS.http,
  datagrams: RELAY_CHECKS.datagrams,
};
