import { parseIntegerOption, parseNameListOption, parseOptions } from '../option-values.ts';

export type HostileOptions = {
  /** How often each scenario is measured. */
  readonly rounds: number;
  /** Duration of one measurement. */
  readonly seconds: number;
  /** The selected scenarios in the order in which they run; absent if all run. */
  readonly scenarios?: readonly HostileScenarioName[];
};

export const HOSTILE_DEFAULTS = { rounds: 5, seconds: 4 } as const;

/** The scenarios in the order in which they run. */
export const HOSTILE_SCENARIO_DESCRIPTIONS = {
  handshakes: '5,000 connections that each send a ClientHello at the same moment; the certificate has a P-256 key',
  'handshakes-rsa':
    '2,500 connections that each send a ClientHello at the same moment; the certificate has an RSA-4096 key',
  'dead-endpoints': '5 clients a second of a Service with 1,000 endpoints that all refuse connections',
  'udp-flows': '10,000 UDP datagrams a second, each from another client address',
  'slow-readers':
    'as many clients as the descriptors allow, at most 10,000, that download endless streams and stop reading',
  'http-slow-heads': '1,000 connections whose HTTP heads never end; 1,000 bytes a second',
  'http-slow-bodies': '1,000 connections that send HTTP bodies byte by byte; 1,000 bytes a second',
  'http-slow-reads': '1,000 connections that read HTTP responses of 1 MiB byte by byte; 1,000 bytes a second',
  'http-large-heads': '500 HTTP heads a second of 42 KB with 200 fields',
  'http2-idle': 'as many idle HTTP/2 connections as the descriptors allow, at most 10,000',
  'http2-resets': '20 writes a second of 100 HTTP/2 requests that their client resets at once',
  'http2-bombs': '200 HTTP/2 heads a second of 16 KB that HPACK would expand to 48 MB',
} as const;

export type HostileScenarioName = keyof typeof HOSTILE_SCENARIO_DESCRIPTIONS;

export const HOSTILE_SCENARIO_NAMES: readonly HostileScenarioName[] = Object.keys(
  HOSTILE_SCENARIO_DESCRIPTIONS,
) as HostileScenarioName[];

export function parseHostileArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'hostile'; readonly options: HostileOptions } {
  const values = parseOptions(args, {
    defaults: { rounds: String(HOSTILE_DEFAULTS.rounds), seconds: String(HOSTILE_DEFAULTS.seconds) },
    optional: ['scenarios'],
  });
  if (values === 'help') return { kind: 'help' };
  const { rounds, seconds, scenarios } = values;
  return {
    kind: 'hostile',
    options: {
      rounds: parseIntegerOption('rounds', rounds, { min: 1, max: 100 }),
      seconds: parseIntegerOption('seconds', seconds, { min: 2, max: 60 }),
      ...(scenarios === undefined
        ? {}
        : { scenarios: parseNameListOption('scenarios', scenarios, HOSTILE_SCENARIO_NAMES) }),
    },
  };
}
