import { parseIntegerListOption, parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';

export type ControlOptions = {
  /** Numbers of Services, ascending. Each number is measured in a separate cluster. */
  readonly services: readonly number[];
  readonly followers: number;
  /** Minimum number of changes to measure in each scenario. */
  readonly rounds: number;
  /** The selected scenarios in the order in which they run; absent if all run. */
  readonly scenarios?: readonly ControlScenario[];
};

/** The scenarios in the order in which they run. */
export const CONTROL_SCENARIO_DESCRIPTIONS = {
  start: 'the controller publishes the complete table to an empty Redis, and a follower reads the table',
  endpoint: 'one endpoint of one Service becomes ready or not ready',
  service: 'one Service gets another algorithm',
  rollout: 'all ten pods of one Service are replaced one after the other: 20 changes as fast as they are published',
  tenants: 'in each of 100 tenants (or in all, if there are fewer) one endpoint changes, all at the same time',
} as const;

export type ControlScenario = keyof typeof CONTROL_SCENARIO_DESCRIPTIONS;
export type ChangeScenario = Exclude<ControlScenario, 'start'>;

export const CONTROL_SCENARIOS: readonly ControlScenario[] = Object.keys(
  CONTROL_SCENARIO_DESCRIPTIONS,
) as ControlScenario[];

export const CONTROL_DEFAULTS = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 } as const;

export function parseControlArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'control'; readonly options: ControlOptions } {
  const values = parseOptions(args, {
    defaults: {
      services: CONTROL_DEFAULTS.services.join(','),
      followers: String(CONTROL_DEFAULTS.followers),
      rounds: String(CONTROL_DEFAULTS.rounds),
    },
    optional: ['scenarios'],
  });
  if (values === 'help') return { kind: 'help' };
  const { scenarios } = values;
  return {
    kind: 'control',
    options: {
      services: parseIntegerListOption('services', values.services, { min: 1, max: 10_000 }),
      followers: parseIntegerOption('followers', values.followers, { min: 1, max: 200 }),
      rounds: parseIntegerOption('rounds', values.rounds, { min: 1, max: 1_000 }),
      ...(scenarios === undefined ? {} : { scenarios: parseNameListOption('scenarios', scenarios, CONTROL_SCENARIOS) }),
    },
  };
}
