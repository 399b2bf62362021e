import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';

export type CostOptions = {
  readonly rounds: number;
  /** Duration of one round, in which all subjects get the load at once. */
  readonly seconds: number;
  /** The selected loads in the order in which they run; absent if all run. */
  readonly scenarios?: readonly CostScenarioName[];
  /** Folder with one folder of CPU profiles for each subject. The result of a run with profiles is not saved. */
  readonly profileDirectory?: string;
};

/** The loads in the order in which they run. */
export const COST_SCENARIO_DESCRIPTIONS = {
  requests: 'TCP: CPU per request over kept connections',
  connections: 'TCP: CPU per connection with one request',
  stream: 'TCP: CPU per GB of one stream',
  http: 'HTTP/1.1: CPU per request over kept connections',
  udp: 'UDP: CPU per round trip, 64 flows',
} as const;

export type CostScenarioName = keyof typeof COST_SCENARIO_DESCRIPTIONS;

export const COST_SCENARIO_NAMES: readonly CostScenarioName[] = Object.keys(
  COST_SCENARIO_DESCRIPTIONS,
) as CostScenarioName[];

/** The default, and the smallest number of rounds of a run that is saved. */
export const COST_ROUNDS = 12;

export function parseCostArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'cost'; readonly options: CostOptions } {
  const values = parseOptions(args, {
    defaults: { rounds: String(COST_ROUNDS), seconds: '6' },
    optional: ['scenarios', 'profile'],
  });
  if (values === 'help') return { kind: 'help' };
  const { rounds, seconds, scenarios, profile } = values;
  return {
    kind: 'cost',
    options: {
      rounds: parseIntegerOption('rounds', rounds, { min: 1, max: 100 }),
      seconds: parseIntegerOption('seconds', seconds, { min: 1, max: 30 }),
      ...(scenarios === undefined
        ? {}
        : { scenarios: parseNameListOption('scenarios', scenarios, COST_SCENARIO_NAMES) }),
      ...(profile === undefined ? {} : { profileDirectory: profile }),
    },
  };
}
