import { parseIntegerListOption, parseIntegerOption, parseOptions } from '../option-values.ts';

export type StartOptions = {
  /** Services of the fleet. */
  readonly services: number;
  /** Numbers of Services that the proxy's node serves, ascending; each number is a row of the result. */
  readonly servicesOnNode: readonly number[];
  /** Starts for each number of Services. */
  readonly rounds: number;
  /** Where the proxies write CPU profiles; the result of such a run is not kept. */
  readonly profileDirectory?: string;
};

/** The node is one of a hundred nodes, one of three, and one of two nodes that serve all Services. */
export const START_DEFAULTS = { services: 10_000, servicesOnNode: [200, 6_670, 10_000], rounds: 5 } as const;

const SERVICES_RANGE = { min: 1, max: 10_000 };

export function parseStartArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'start'; readonly options: StartOptions } {
  const values = parseOptions(args, {
    defaults: {
      services: String(START_DEFAULTS.services),
      'services-on-node': START_DEFAULTS.servicesOnNode.join(','),
      rounds: String(START_DEFAULTS.rounds),
    },
    optional: ['profile'],
  });
  if (values === 'help') return { kind: 'help' };
  const services = parseIntegerOption('services', values.services, SERVICES_RANGE);
  const requested = parseIntegerListOption('services-on-node', values['services-on-node'], SERVICES_RANGE);
  return {
    kind: 'start',
    options: {
      services,
      servicesOnNode: [...new Set(requested.map((count) => Math.min(count, services)))],
      rounds: parseIntegerOption('rounds', values.rounds, { min: 1, max: 100 }),
      ...(values.profile === undefined ? {} : { profileDirectory: values.profile }),
    },
  };
}
