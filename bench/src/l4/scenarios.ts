import type { ScenarioResult } from '../report/result.ts';
import { udpRoundTrips } from './datagram-load.ts';
import type { Load } from './load.ts';
import { measureLatency } from './measure-latency.ts';
import { measureMemory } from './measure-memory.ts';
import { measureVariant } from './measure-variant.ts';
import { measureLoad } from './rounds.ts';
import type { L4ScenarioName } from './scenario-name.ts';
import type { L4Run } from './stage.ts';
import { oneStream } from './stream-load.ts';
import { keepAliveRequests, oneConnectionPerRequest } from './wrk-loads.ts';

type Scenario = (stage: L4Run) => Promise<ScenarioResult[]>;

/** With the bars of Weir's: how many times the figure of each its own may be. */
export const scenarios: Readonly<Record<L4ScenarioName, Scenario>> = {
  requests: compareSubjects(keepAliveRequests, { haproxy: 1.0, envoy: 0.85 }),
  connections: compareSubjects(oneConnectionPerRequest, { haproxy: 1.5, envoy: 1.0 }),
  stream: compareSubjects(oneStream, { haproxy: 0.6 }),
  udp: compareSubjects(udpRoundTrips, { envoy: 1.4 }),
  latency: measureLatency,
  limits: (stage) =>
    measureVariant(stage, {
      variant: 'weir-limits',
      title: 'limits on',
      loads: [keepAliveRequests, oneConnectionPerRequest, oneStream],
      maxRatio: 1.05,
    }),
  workers: (stage) =>
    measureVariant(stage, {
      variant: 'weir-2-workers',
      title: 'two workers',
      loads: [keepAliveRequests, oneConnectionPerRequest],
      maxRatio: 1.1,
    }),
  memory: measureMemory,
};

function compareSubjects(load: Load, bars: ScenarioResult['bars']): Scenario {
  return (stage) => {
    const { backend } = load;
    return measureLoad(stage, load, {
      startSubjects: (during) => stage.startSubjects(stage.options.subjects, { backend, during }),
      bars,
    });
  };
}
