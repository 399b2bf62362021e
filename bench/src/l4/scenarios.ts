import type { Scenario } from '../comparison/benchmark.ts';
import type { ScenarioReadings, TargetRatios } from '../comparison/comparison-result.ts';
import type { ComparisonRun, ComparisonRunOptions } from '../comparison/comparison-run.ts';
import type { Load } from '../comparison/load.ts';
import { measureLatency } from '../comparison/measure-latency.ts';
import { measureLoad } from '../comparison/rounds.ts';
import type { BackendName, StartableSubjectName } from '../subjects/subject.ts';
import { echoLoop, keepAliveRequests, oneConnectionPerRequest, oneStream, udpRoundTrips, udpStream } from './loads.ts';
import { measureMemory } from './measure-memory.ts';
import type { L4ScenarioName } from './options.ts';

export type L4Run = ComparisonRun<BackendName, StartableSubjectName>;
export type L4RunOptions = ComparisonRunOptions<BackendName, StartableSubjectName>;

type L4Scenario = Scenario<BackendName, StartableSubjectName>;

export const scenarios: Readonly<Record<L4ScenarioName, L4Scenario>> = {
  requests: compareSubjects(keepAliveRequests, { haproxy: 1.0, envoy: 0.85 }),
  connections: compareSubjects(oneConnectionPerRequest, { haproxy: 1.05, envoy: 0.7 }),
  stream: compareSubjects(oneStream, { haproxy: 0.5 }),
  udp: compareSubjects(udpRoundTrips, { envoy: 1.0 }),
  'udp-stream': compareSubjects(udpStream, { envoy: 0.9 }),
  latency: (run) => measureLatency(run, echoLoop),
  limits: (run) =>
    measureVariant(run, {
      variant: 'weir-limits',
      title: 'limits on',
      loads: [keepAliveRequests, oneConnectionPerRequest, oneStream],
      maxRatio: 1.05,
    }),
  workers: (run) =>
    measureVariant(run, {
      variant: 'weir-2-workers',
      title: 'two workers',
      loads: [keepAliveRequests, oneConnectionPerRequest],
      maxRatio: 1.1,
    }),
  memory: measureMemory,
};

function compareSubjects(load: Load<BackendName>, targets: TargetRatios): L4Scenario {
  const { backend } = load;
  return (run) =>
    measureLoad(run, load, {
      startSubjects: (during) => run.startSubjects(run.options.subjects, { backend, during }),
      targets,
    });
}

export type VariantOptions = {
  readonly variant: 'weir-limits' | 'weir-2-workers';
  readonly title: string;
  readonly loads: readonly Load<BackendName>[];
  /** Target: the variant's figure is at most this multiple of the figure of Weir with one worker and no limits. */
  readonly maxRatio: number;
};

/** Compares a variant of Weir with the Weir that all other scenarios measure: one worker and no limits. */
export async function measureVariant(
  run: L4Run,
  { variant, title, loads, maxRatio }: VariantOptions,
): Promise<ScenarioReadings[]> {
  if (!run.options.subjects.includes('weir')) return [];
  const results: ScenarioReadings[] = [];
  for (const load of loads) {
    const { backend } = load;
    const measured = await measureLoad(run, load, {
      // returns no subjects if one of the two does not relay to the backend, because nothing can be compared
      startSubjects: async (during) => {
        const started = await run.startSubjects(['weir', variant], { backend, during });
        return started.length === 2 ? started : [];
      },
      targets: { weir: maxRatio },
      judgedSubject: variant,
      title: `${title}: ${load.title}`,
    });
    results.push(...measured);
  }
  return results;
}
