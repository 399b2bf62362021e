import { parseArgs } from 'node:util';
import { parseIntegerListOption, parseIntegerOption, parseNameListOption } from '../option-values.ts';

export type PropagationOptions = {
  /** How many Services, ascending; each is a run of its own. */
  readonly services: readonly number[];
  /** Changes of each run. */
  readonly changes: number;
  readonly sources: readonly PropagationSource[];
  /** Nobody has named the sources: one that cannot be had is left out. */
  readonly isByDefault: boolean;
  /** Where the proxies write CPU profiles; such a run is no result. */
  readonly profile?: string;
};

export const PROPAGATION_DEFAULTS = { services: [10, 10_000], changes: 200 } as const;
const OPTION_RANGES = { services: { least: 1, most: 10_000 }, changes: { least: 1, most: 10_000 } } as const;

/** Throws with one sentence when an argument is wrong. */
export function parsePropagationArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'propagation'; readonly options: PropagationOptions } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      services: { type: 'string', default: PROPAGATION_DEFAULTS.services.join(',') },
      changes: { type: 'string', default: String(PROPAGATION_DEFAULTS.changes) },
      source: { type: 'string' },
      profile: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  return {
    kind: 'propagation',
    options: {
      services: parseIntegerListOption('services', values.services, OPTION_RANGES.services),
      changes: parseIntegerOption('changes', values.changes, OPTION_RANGES.changes),
      sources:
        values.source === undefined
          ? PROPAGATION_SOURCES
          : parseNameListOption('source', values.source, PROPAGATION_SOURCES),
      isByDefault: values.source === undefined,
      ...(values.profile === undefined ? {} : { profile: values.profile }),
    },
  };
}

/** Where the controller has its objects from. */
export const PROPAGATION_SOURCE_DESCRIPTIONS = {
  memory: "a fake in the controller's memory",
  api: 'a real kube-apiserver, with 10 Services',
} as const;

export type PropagationSource = keyof typeof PROPAGATION_SOURCE_DESCRIPTIONS;

export const PROPAGATION_SOURCES: readonly PropagationSource[] = Object.keys(
  PROPAGATION_SOURCE_DESCRIPTIONS,
) as PropagationSource[];
