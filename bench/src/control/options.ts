import { parseArgs } from 'node:util';
import { parseIntegerListOption, parseIntegerOption, parseNameListOption } from '../option-values.ts';

export type ControlOptions = {
  /** How many Services, ascending; each is a run of its own. */
  readonly services: readonly number[];
  readonly followers: number;
  /** Changes of each scenario. */
  readonly rounds: number;
  /** Absent: all. In the order in which they run. */
  readonly only?: readonly ControlScenario[];
};

export const CONTROL_DEFAULTS = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 } as const;

const OPTION_RANGES = {
  services: { least: 1, most: 10_000 },
  followers: { least: 1, most: 200 },
  rounds: { least: 1, most: 1_000 },
} as const;

/** Throws with one sentence when an argument is wrong. */
export function parseControlArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'control'; readonly options: ControlOptions } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      services: { type: 'string', default: CONTROL_DEFAULTS.services.join(',') },
      followers: { type: 'string', default: String(CONTROL_DEFAULTS.followers) },
      rounds: { type: 'string', default: String(CONTROL_DEFAULTS.rounds) },
      only: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  const only = values.only === undefined ? undefined : parseNameListOption('only', values.only, CONTROL_SCENARIOS);
  return {
    kind: 'control',
    options: {
      services: parseIntegerListOption('services', values.services, OPTION_RANGES.services),
      followers: parseIntegerOption('followers', values.followers, OPTION_RANGES.followers),
      rounds: parseIntegerOption('rounds', values.rounds, OPTION_RANGES.rounds),
      ...(only === undefined ? {} : { only }),
    },
  };
}

/** What the controller is given to do, in the order in which it is done. */
export const CONTROL_SCENARIO_DESCRIPTIONS = {
  start: 'from nothing in Redis to the whole table, and a follower that reads it',
  endpoint: 'one endpoint of one Service is ready, or is not any more',
  service: 'one Service gets another algorithm',
  rollout: 'all ten pods of one Service are replaced, one after the other: 20 changes as fast as they are published',
  tenants: 'one endpoint of one Service of each of 100 tenants (all, where there are fewer), at the same moment',
} as const;

export type ControlScenario = keyof typeof CONTROL_SCENARIO_DESCRIPTIONS;
/** Those that change what has started. */
export type ChangeScenario = Exclude<ControlScenario, 'start'>;

export const CONTROL_SCENARIOS: readonly ControlScenario[] = Object.keys(
  CONTROL_SCENARIO_DESCRIPTIONS,
) as ControlScenario[];
