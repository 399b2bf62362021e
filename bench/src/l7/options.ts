import { type ComparisonOptions, parseComparisonArguments } from '../comparison/options.ts';
import { L7_SUBJECTS, type L7SubjectName } from './listeners.ts';

export type L7Options = ComparisonOptions<L7SubjectName> & {
  /** The selected scenarios in the order in which they run; absent if all run. */
  readonly scenarios?: readonly L7ScenarioName[];
};

/** The scenarios in the order in which they run. */
export const L7_SCENARIO_DESCRIPTIONS = {
  requests: 'CPU per request over kept connections, with the head of a browser',
  connections: 'CPU per connection with one request',
  routes: 'CPU per request over kept connections: 1,000 hosts and path prefixes, with one route and with 1,000 routes',
  bodies: 'CPU per request: responses of 0 bytes, 10 KB and 1 MB, and request bodies of 10 KB',
  handshakes: 'CPU per TLS connection, full and resumed, and CPU per request over kept TLS connections',
  http2: 'CPU per request: h2load -c 32 -m 4 with HTTP/2, and a backend with HTTP/1.1 (without http-proxy)',
  grpc: 'CPU per unary gRPC call: h2load -c 32 -m 4, and a backend with HTTP/2 (without http-proxy)',
  latency: 'latency of requests at half of the highest rate that HAProxy sustains (without http-proxy)',
} as const;

export type L7ScenarioName = keyof typeof L7_SCENARIO_DESCRIPTIONS;

export const L7_SCENARIO_NAMES: readonly L7ScenarioName[] = Object.keys(L7_SCENARIO_DESCRIPTIONS) as L7ScenarioName[];

export function parseL7Arguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'l7'; readonly options: L7Options } {
  const options = parseComparisonArguments(args, {
    selectable: L7_SUBJECTS,
    defaults: L7_SUBJECTS,
    scenarios: L7_SCENARIO_NAMES,
  });
  return options === 'help' ? { kind: 'help' } : { kind: 'l7', options };
}
