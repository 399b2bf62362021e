import { type ControlOptions, parseControlArguments } from './control/options.ts';
import { type CostOptions, parseCostArguments } from './cost/options.ts';
import { type CutoffOptions, parseCutoffArguments } from './cutoff/options.ts';
import { type FairnessOptions, parseFairnessArguments } from './fairness/options.ts';
import { type HostileOptions, parseHostileArguments } from './hostile/options.ts';
import { type L4Options, parseL4Arguments } from './l4/options.ts';
import { type L7Options, parseL7Arguments } from './l7/options.ts';
import { type LeasesOptions, parseLeasesArguments } from './leases/options.ts';
import { type LimitsOptions, parseLimitsArguments } from './limits/options.ts';
import { type PropagationOptions, parsePropagationArguments } from './propagation/options.ts';
import { parseSoakArguments, type SoakOptions } from './soak/options.ts';
import { parseStartArguments, type StartOptions } from './start/options.ts';

export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'l4'; readonly options: L4Options }
  | { readonly kind: 'l7'; readonly options: L7Options }
  | { readonly kind: 'cost'; readonly options: CostOptions }
  | { readonly kind: 'fairness'; readonly options: FairnessOptions }
  | { readonly kind: 'hostile'; readonly options: HostileOptions }
  | { readonly kind: 'control'; readonly options: ControlOptions }
  | { readonly kind: 'propagation'; readonly options: PropagationOptions }
  | { readonly kind: 'cutoff'; readonly options: CutoffOptions }
  | { readonly kind: 'limits'; readonly options: LimitsOptions }
  | { readonly kind: 'leases'; readonly options: LeasesOptions }
  | { readonly kind: 'start'; readonly options: StartOptions }
  | { readonly kind: 'soak'; readonly options: SoakOptions };

const BENCHMARK_NAMES = 'l4, l7, cost, fairness, hostile, control, propagation, cutoff, limits, leases, start, soak';

export function parseArguments(args: readonly string[]): Command {
  try {
    return parseCommand(args);
  } catch (error) {
    // removes the hint about positional arguments that parseArgs appends, because no benchmark has positional arguments
    return { kind: 'invalid', message: (error as Error).message.replace(/\. .*/s, '') };
  }
}

function parseCommand([name, ...options]: readonly string[]): Command {
  switch (name) {
    case undefined:
      throw new Error(`missing name of a benchmark: expected one of ${BENCHMARK_NAMES}`);
    case '-h':
    case '--help':
      return { kind: 'help' };
    case 'l4':
      return parseL4Arguments(options);
    case 'l7':
      return parseL7Arguments(options);
    case 'cost':
      return parseCostArguments(options);
    case 'fairness':
      return parseFairnessArguments(options);
    case 'hostile':
      return parseHostileArguments(options);
    case 'control':
      return parseControlArguments(options);
    case 'propagation':
      return parsePropagationArguments(options);
    case 'cutoff':
      return parseCutoffArguments(options);
    case 'limits':
      return parseLimitsArguments(options);
    case 'leases':
      return parseLeasesArguments(options);
    case 'start':
      return parseStartArguments(options);
    case 'soak':
      return parseSoakArguments(options);
    default:
      throw new Error(`invalid benchmark "${name}": expected one of ${BENCHMARK_NAMES}`);
  }
}
