import { parseIntegerOption, parseOptions } from '../option-values.ts';

export type LeasesOptions = {
  /** Proxies and tenants of the large fleet. */
  readonly proxies: number;
  readonly tenants: number;
  /** Seconds of each simulation of a small fleet. */
  readonly seconds: number;
  /** How often each small fleet is simulated, each time with other random arrivals. */
  readonly rounds: number;
};

export const LEASES_DEFAULTS: LeasesOptions = { proxies: 1_000, tenants: 10_000, seconds: 60, rounds: 4 };

export function parseLeasesArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'leases'; readonly options: LeasesOptions } {
  const { proxies, tenants, seconds, rounds } = LEASES_DEFAULTS;
  const values = parseOptions(args, {
    defaults: {
      proxies: String(proxies),
      tenants: String(tenants),
      seconds: String(seconds),
      rounds: String(rounds),
    },
  });
  if (values === 'help') return { kind: 'help' };
  return {
    kind: 'leases',
    options: {
      proxies: parseIntegerOption('proxies', values.proxies, { min: 4, max: 2_000 }),
      tenants: parseIntegerOption('tenants', values.tenants, { min: 1, max: 20_000 }),
      seconds: parseIntegerOption('seconds', values.seconds, { min: 30, max: 600 }),
      rounds: parseIntegerOption('rounds', values.rounds, { min: 1, max: 100 }),
    },
  };
}
