import type { Scenario } from '../comparison/benchmark.ts';
import type { ScenarioReadings, TargetRatios } from '../comparison/comparison-result.ts';
import type { Load } from '../comparison/load.ts';
import { measureLatency } from '../comparison/measure-latency.ts';
import { measureLoad } from '../comparison/rounds.ts';
import type { L7Listener, L7SubjectName } from './listeners.ts';
import {
  bodyLoads,
  fullHandshakes,
  grpcCalls,
  http2Requests,
  keptRequests,
  keptTlsRequests,
  oneConnectionPerRequest,
  requestLoop,
  requestsWithAllRoutes,
  requestsWithOneRoute,
  resumedHandshakes,
} from './loads.ts';
import type { L7ScenarioName } from './options.ts';

type L7Scenario = Scenario<L7Listener, L7SubjectName>;

const REQUEST_TARGETS: TargetRatios = { haproxy: 1.0, envoy: 0.4, 'http-proxy': 0.1 };

export const L7_SCENARIOS: Readonly<Record<L7ScenarioName, L7Scenario>> = {
  requests: compareSubjects([keptRequests, REQUEST_TARGETS]),
  connections: compareSubjects([oneConnectionPerRequest, { haproxy: 1.3, envoy: 0.6 }]),
  routes: compareSubjects([requestsWithOneRoute, REQUEST_TARGETS], [requestsWithAllRoutes, REQUEST_TARGETS]),
  bodies: compareSubjects(...bodyLoads.map((load): LoadWithTargets => [load, {}])),
  handshakes: compareSubjects(
    [fullHandshakes, { haproxy: 1.5 }],
    [resumedHandshakes, { haproxy: 1.5 }],
    [keptTlsRequests, { haproxy: 1.3 }],
  ),
  http2: compareSubjects([http2Requests, { envoy: 0.8 }]),
  grpc: compareSubjects([grpcCalls, { envoy: 1.0 }]),
  latency: (run) => measureLatency(run, requestLoop),
};

type LoadWithTargets = readonly [load: Load<L7Listener>, targets: TargetRatios];

function compareSubjects(...loads: readonly LoadWithTargets[]): L7Scenario {
  return async (run) => {
    const results: ScenarioReadings[] = [];
    for (const [load, targets] of loads) {
      const { backend } = load;
      const measured = await measureLoad(run, load, {
        startSubjects: (during) => run.startSubjects(run.options.subjects, { backend, during }),
        targets,
      });
      results.push(...measured);
    }
    return results;
  };
}
