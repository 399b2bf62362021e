import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';

export type CutoffOptions = {
  readonly proxies: number;
  /** Connections through all proxies together: TCP connections, WebSockets, HTTP/2 streams and UDP flows. */
  readonly connections: number;
  /** How often each scenario is measured. */
  readonly rounds: number;
  /** The selected scenarios in the order in which they run; absent if all run. */
  readonly scenarios?: readonly CutoffScenarioName[];
};

export const CUTOFF_DEFAULTS = { proxies: 10, connections: 10_000, rounds: 3 } as const;

/** The scenarios in the order in which they run. */
export const CUTOFF_SCENARIO_DESCRIPTIONS = {
  suspend: '`weir suspend`',
  kubectl: '`kubectl create` of a Suspension',
  'no-controller': '`weir suspend` while the controller is away',
  'no-api-server': '`weir suspend` while the API server is away',
  'redis-only': '`weir suspend` while the controller and the API server are away',
  local: '`weir suspend --local` on each node while the controller, the API server and Redis are away',
  'no-redis':
    '`weir suspend` while one proxy has no Redis; measured from the moment at which this proxy has Redis again',
  restart: '`weir suspend`, then SIGKILL of all processes, and their start; clients connect all the time',
} as const;

export type CutoffScenarioName = keyof typeof CUTOFF_SCENARIO_DESCRIPTIONS;

export const CUTOFF_SCENARIO_NAMES: readonly CutoffScenarioName[] = Object.keys(
  CUTOFF_SCENARIO_DESCRIPTIONS,
) as CutoffScenarioName[];

export function parseCutoffArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'cutoff'; readonly options: CutoffOptions } {
  const { proxies, connections, rounds } = CUTOFF_DEFAULTS;
  const values = parseOptions(args, {
    defaults: { proxies: String(proxies), connections: String(connections), rounds: String(rounds) },
    optional: ['scenarios'],
  });
  if (values === 'help') return { kind: 'help' };
  return {
    kind: 'cutoff',
    options: {
      proxies: parseIntegerOption('proxies', values.proxies, { min: 1, max: 20 }),
      connections: parseIntegerOption('connections', values.connections, { min: 100, max: 20_000 }),
      rounds: parseIntegerOption('rounds', values.rounds, { min: 1, max: 100 }),
      ...(values.scenarios === undefined
        ? {}
        : { scenarios: parseNameListOption('scenarios', values.scenarios, CUTOFF_SCENARIO_NAMES) }),
    },
  };
}
