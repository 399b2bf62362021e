import { parseIntegerListOption, parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';

export type PropagationOptions = {
  /** Numbers of Services, ascending. Each number is measured in a separate run. */
  readonly services: readonly number[];
  /** Number of measured changes in each run. */
  readonly changes: number;
  readonly sources: readonly PropagationSource[];
  /** True if `sources` is the default. In this case, a source whose programs are missing is left out; the other sources run. */
  readonly usesDefaultSources: boolean;
  /** Folder for the CPU profiles of the proxies. The result of a run with profiles is not saved. */
  readonly profileDirectory?: string;
};

/** Where the controller reads Kubernetes objects from. */
export const PROPAGATION_SOURCE_DESCRIPTIONS = {
  memory: 'objects in the memory of the controller',
  api: 'a real kube-apiserver, with 10 Services',
} as const;

export type PropagationSource = keyof typeof PROPAGATION_SOURCE_DESCRIPTIONS;

const PROPAGATION_SOURCES = Object.keys(PROPAGATION_SOURCE_DESCRIPTIONS) as PropagationSource[];

export const PROPAGATION_DEFAULTS = { services: [10, 10_000], changes: 200 } as const;

export function parsePropagationArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'propagation'; readonly options: PropagationOptions } {
  const values = parseOptions(args, {
    defaults: {
      services: PROPAGATION_DEFAULTS.services.join(','),
      changes: String(PROPAGATION_DEFAULTS.changes),
    },
    optional: ['source', 'profile'],
  });
  if (values === 'help') return { kind: 'help' };
  const { source, profile } = values;
  return {
    kind: 'propagation',
    options: {
      services: parseIntegerListOption('services', values.services, { min: 1, max: 10_000 }),
      changes: parseIntegerOption('changes', values.changes, { min: 1, max: 10_000 }),
      sources: source === undefined ? PROPAGATION_SOURCES : parseNameListOption('source', source, PROPAGATION_SOURCES),
      usesDefaultSources: source === undefined,
      ...(profile === undefined ? {} : { profileDirectory: profile }),
    },
  };
}
