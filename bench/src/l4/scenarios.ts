import type { ScenarioResult } from './l4-result.ts';
import type { L4Run } from './l4-run.ts';
import { keepAliveRequests, type Load, oneConnectionPerRequest, oneStream, udpRoundTrips } from './loads.ts';
import { measureLatency } from './measure-latency.ts';
import { measureMemory } from './measure-memory.ts';
import { measureLoad } from './rounds.ts';
import type { L4ScenarioName } from './scenario-names.ts';

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

export type VariantOptions = {
  readonly variant: 'weir-limits' | 'weir-2-workers';
  readonly title: string;
  readonly loads: readonly Load[];
  /** How many times the figure of Weir with one worker and no limits. */
  readonly maxRatio: number;
};

/** Weir set up in another way, beside Weir as it is measured elsewhere. */
export async function measureVariant(
  stage: L4Run,
  { variant, title, loads, maxRatio }: VariantOptions,
): Promise<ScenarioResult[]> {
  if (!stage.options.subjects.includes('weir')) return [];
  const results: ScenarioResult[] = [];
  for (const load of loads) {
    const { backend } = load;
    const played = await measureLoad(stage, load, {
      // Alone either of them says nothing.
      startSubjects: async (during) => {
        const both = await stage.startSubjects(['weir', variant], { backend, during });
        return both.length === 2 ? both : [];
      },
      bars: { weir: maxRatio },
      judgedSubject: variant,
      title: `${title}: ${load.title}`,
    });
    results.push(...played);
  }
  return results;
}
