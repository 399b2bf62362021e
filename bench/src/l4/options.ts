import { type ComparisonOptions, parseComparisonArguments } from '../comparison/options.ts';
import { SELECTABLE_SUBJECTS, type SelectableSubjectName } from '../subjects/subject.ts';

export type L4Options = ComparisonOptions<SelectableSubjectName> & {
  /** The selected scenarios in the order in which they run; absent if all run. */
  readonly scenarios?: readonly L4ScenarioName[];
};

/** The scenarios in the order in which they run. */
export const L4_SCENARIO_DESCRIPTIONS = {
  requests: 'CPU per request over kept connections',
  connections: 'CPU per connection with one request',
  stream: 'CPU per GB of one stream',
  udp: 'CPU per UDP round trip, 64 flows (without HAProxy, which does not relay UDP)',
  'udp-stream': 'CPU per datagram of 1,200 bytes, one way, 16 flows, 40,000 datagrams a second (without HAProxy)',
  latency: 'latency at half of the highest rate that HAProxy sustains',
  limits: 'the first three scenarios: Weir with limits that are never reached, compared with Weir without limits',
  workers: 'the first two scenarios: Weir with two workers, compared with Weir with one worker',
  memory: 'memory per idle connection, up to 10,000 connections',
} as const;

export type L4ScenarioName = keyof typeof L4_SCENARIO_DESCRIPTIONS;

export const L4_SCENARIO_NAMES: readonly L4ScenarioName[] = Object.keys(L4_SCENARIO_DESCRIPTIONS) as L4ScenarioName[];

export function parseL4Arguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'l4'; readonly options: L4Options } {
  const options = parseComparisonArguments(args, {
    selectable: SELECTABLE_SUBJECTS,
    defaults: ['weir', 'haproxy', 'nginx', 'envoy'],
    scenarios: L4_SCENARIO_NAMES,
  });
  return options === 'help' ? { kind: 'help' } : { kind: 'l4', options };
}
