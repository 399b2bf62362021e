import { parseArgs } from 'node:util';
import { parseIntegerListOption, parseIntegerOption } from '../option-values.ts';

export type StartOptions = {
  /** Of the fleet. */
  readonly services: number;
  /** How many of them the node of the proxy serves, ascending; each is a row of its own. */
  readonly here: readonly number[];
  /** Starts of each. */
  readonly rounds: number;
  /** Where the proxies write CPU profiles; such a run is no result. */
  readonly profile?: string;
};

/** One of a hundred nodes, one of three, and one of two, which serve all of them. */
export const START_DEFAULTS = { services: 10_000, here: [200, 6_670, 10_000], rounds: 5 } as const;

const OPTION_RANGES = {
  services: { least: 1, most: 10_000 },
  here: { least: 1, most: 10_000 },
  rounds: { least: 1, most: 100 },
} as const;

/** Throws with one sentence when an argument is wrong. */
export function parseStartArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'start'; readonly options: StartOptions } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      services: { type: 'string', default: String(START_DEFAULTS.services) },
      here: { type: 'string', default: START_DEFAULTS.here.join(',') },
      rounds: { type: 'string', default: String(START_DEFAULTS.rounds) },
      profile: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  const services = parseIntegerOption('services', values.services, OPTION_RANGES.services);
  return {
    kind: 'start',
    options: {
      services,
      here: [
        ...new Set(
          parseIntegerListOption('here', values.here, OPTION_RANGES.here).map((each) => Math.min(each, services)),
        ),
      ],
      rounds: parseIntegerOption('rounds', values.rounds, OPTION_RANGES.rounds),
      ...(values.profile === undefined ? {} : { profile: values.profile }),
    },
  };
}
