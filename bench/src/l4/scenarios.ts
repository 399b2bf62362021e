import type { ScenarioResult } from '../report/result.ts';
import { udpRoundTrips } from './datagram-load.ts';
import type { Load } from './load.ts';
import { measureLatency } from './measure-latency.ts';
import { measureMemory } from './measure-memory.ts';
import { measureVariant } from './measure-variant.ts';
import { playLoad } from './rounds.ts';
import type { ScenarioName } from './scenario-name.ts';
import type { Stage } from './stage.ts';
import { oneStream } from './stream-load.ts';
import { keptConnections, oneConnectionPerRequest } from './wrk-loads.ts';

type Scenario = (stage: Stage) => Promise<ScenarioResult[]>;

/** With the bars of Weir's: how many times the figure of each its own may be. */
export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  requests: comparing(keptConnections, { haproxy: 1.0, envoy: 0.85 }),
  connections: comparing(oneConnectionPerRequest, { haproxy: 1.5, envoy: 1.0 }),
  stream: comparing(oneStream, { haproxy: 0.6 }),
  udp: comparing(udpRoundTrips, { envoy: 1.4 }),
  latency: measureLatency,
  limits: (stage) =>
    measureVariant(stage, {
      variant: 'weir-limits',
      title: 'limits on',
      loads: [keptConnections, oneConnectionPerRequest, oneStream],
      most: 1.05,
    }),
  workers: (stage) =>
    measureVariant(stage, {
      variant: 'weir-2-workers',
      title: 'two workers',
      loads: [keptConnections, oneConnectionPerRequest],
      most: 1.1,
    }),
  memory: measureMemory,
};

function comparing(load: Load, bars: ScenarioResult['bars']): Scenario {
  return (stage) => {
    const { backend } = load;
    return playLoad(stage, load, { cast: (during) => stage.fresh(stage.options.subjects, { backend, during }), bars });
  };
}
