import { parseArgs } from 'node:util';
import { namesOption, wholeOption, wholeOptions } from '../option-values.ts';
import { type ControlScenario, controlScenarios } from './scenario-name.ts';

export type ControlOptions = {
  /** How many Services, ascending; each is a run of its own. */
  readonly services: readonly number[];
  readonly followers: number;
  /** Changes of each scenario. */
  readonly rounds: number;
  /** Absent: all. In the order in which they run. */
  readonly only?: readonly ControlScenario[];
};

export const controlDefaults = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 } as const;

const ranges = {
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
      services: { type: 'string', default: controlDefaults.services.join(',') },
      followers: { type: 'string', default: String(controlDefaults.followers) },
      rounds: { type: 'string', default: String(controlDefaults.rounds) },
      only: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  const only = values.only === undefined ? undefined : namesOption('only', values.only, controlScenarios);
  return {
    kind: 'control',
    options: {
      services: wholeOptions('services', values.services, ranges.services),
      followers: wholeOption('followers', values.followers, ranges.followers),
      rounds: wholeOption('rounds', values.rounds, ranges.rounds),
      ...(only === undefined ? {} : { only }),
    },
  };
}
