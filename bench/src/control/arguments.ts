import { parseArgs } from 'node:util';
import { parseIntegerListOption, parseIntegerOption, parseNameListOption } from '../option-values.ts';
import { CONTROL_SCENARIOS, type ControlScenario } from './scenario-name.ts';

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
