import { parseIntegerListOption, parseIntegerOption, parseOptions } from '../option-values.ts';

export type StartOptions = {
  /** Number of Services in the fleet. */
  readonly services: number;
  /** Numbers of Services that the proxy's node serves, ascending. Each number is one row of the result. */
  readonly servicesOnNode: readonly number[];
  /** How often the proxy starts for each number of Services. */
  readonly rounds: number;
  /** Folder for the CPU profiles of the proxies. The result of a run with profiles is not saved. */
  readonly profileDirectory?: string;
};

/**
 * If each of the 10,000 Services is on two nodes, a node serves 200 Services in a fleet of 100 nodes, 6,670 Services in a fleet of three
 * nodes, and 10,000 Services in a fleet of two nodes.
 */
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
