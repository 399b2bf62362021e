import { parseArgs } from 'node:util';
import { type ControlOptions, parseControlArguments } from './control/options.ts';
import { isL4ScenarioName, L4_SCENARIO_NAMES, type L4ScenarioName } from './l4/scenario-names.ts';
import { parseIntegerOption } from './option-values.ts';
import { type PropagationOptions, parsePropagationArguments } from './propagation/options.ts';
import { parseSoakArguments, type SoakOptions } from './soak/options.ts';
import { parseStartArguments, type StartOptions } from './start/options.ts';
import { isSelectableSubject, SELECTABLE_SUBJECTS, type SelectableSubjectName } from './subjects/subject.ts';

export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'l4'; readonly options: L4Options }
  | { readonly kind: 'fairness'; readonly options: ComparisonOptions }
  | { readonly kind: 'control'; readonly options: ControlOptions }
  | { readonly kind: 'propagation'; readonly options: PropagationOptions }
  | { readonly kind: 'start'; readonly options: StartOptions }
  | { readonly kind: 'soak'; readonly options: SoakOptions };

export type ComparisonOptions = {
  readonly pairs: number;
  readonly seconds: number;
  readonly subjects: readonly SelectableSubjectName[];
  /** Nobody has named them: one that cannot be had is left out. */
  readonly isByDefault: boolean;
};

export type L4Options = ComparisonOptions & {
  /** Absent: all. In the order in which they run. */
  readonly only?: readonly L4ScenarioName[];
  /** Where Weir writes CPU profiles of its threads; such a run is no result. */
  readonly profile?: string;
};

const COMPARISON_BENCHMARKS = ['l4', 'fairness'] as const;
const BENCHMARK_LIST = [...COMPARISON_BENCHMARKS, 'control', 'propagation', 'start', 'soak'].join(', ');
const OPTION_RANGES = { pairs: { least: 1, most: 100 }, seconds: { least: 1, most: 30 } };
const DEFAULT_SUBJECTS: Readonly<Record<(typeof COMPARISON_BENCHMARKS)[number], readonly SelectableSubjectName[]>> = {
  l4: ['weir', 'haproxy', 'nginx', 'envoy'],
  fairness: ['weir', 'haproxy'],
};

export function parseArguments(args: readonly string[]): Command {
  try {
    const [name, ...others] = args;
    if (name === 'soak') return parseSoakArguments(others);
    if (name === 'control') return parseControlArguments(others);
    if (name === 'start') return parseStartArguments(others);
    if (name === 'propagation') return parsePropagationArguments(others);
    return parseComparisonArguments(args);
  } catch (error) {
    return { kind: 'wrong', message: (error as Error).message.replace(/\. .*/s, '') };
  }
}

function parseComparisonArguments(args: readonly string[]): Command {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      pairs: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '2' },
      subjects: { type: 'string' },
      only: { type: 'string' },
      profile: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  const [text, ...others] = positionals;
  if (text === undefined) throw new Error(`which benchmark? There are: ${BENCHMARK_LIST}`);
  const name = COMPARISON_BENCHMARKS.find((each) => each === text);
  if (name === undefined) throw new Error(`there is no benchmark "${text}"; there are: ${BENCHMARK_LIST}`);
  if (others[0] !== undefined) throw new Error(`"${others[0]}" is too much`);
  const common = {
    pairs: parseIntegerOption('pairs', values.pairs, OPTION_RANGES.pairs),
    seconds: parseIntegerOption('seconds', values.seconds, OPTION_RANGES.seconds),
    subjects:
      values.subjects === undefined
        ? DEFAULT_SUBJECTS[name]
        : parseList('subjects', values.subjects, isSelectableSubject),
    isByDefault: values.subjects === undefined,
  };
  if (name === 'l4') return { kind: 'l4', options: { ...common, ...l4OptionsFor(values) } };
  for (const option of ['only', 'profile'] as const) {
    if (values[option] !== undefined) throw new Error(`--${option} is of l4, and ${name} has none`);
  }
  return { kind: 'fairness', options: common };
}

function l4OptionsFor({
  only,
  profile,
}: {
  readonly only?: string | undefined;
  readonly profile?: string | undefined;
}): Pick<L4Options, 'only' | 'profile'> {
  const chosen = only === undefined ? undefined : parseList('only', only, isL4ScenarioName);
  return {
    ...(chosen === undefined ? {} : { only: L4_SCENARIO_NAMES.filter((name) => chosen.includes(name)) }),
    ...(profile === undefined ? {} : { profile }),
  };
}

const NAMES_BY_OPTION = { subjects: SELECTABLE_SUBJECTS, only: L4_SCENARIO_NAMES } as const;

function parseList<T extends string>(
  option: keyof typeof NAMES_BY_OPTION,
  text: string,
  isOne: (name: string) => name is T,
): T[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  return names.map((name) => {
    if (isOne(name)) return name;
    throw new Error(`--${option} names "${name}"; use some of ${NAMES_BY_OPTION[option].join(', ')}`);
  });
}
