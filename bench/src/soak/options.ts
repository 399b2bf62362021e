import { parseArgs } from 'node:util';

export type SoakOptions = { readonly minutes: number; readonly seed: number; readonly workers: number };

const OPTION_RANGES = {
  minutes: { least: 0.1, most: 240, isWhole: false },
  seed: { least: 0, most: 2 ** 32 - 1, isWhole: true },
  workers: { least: 1, most: 16, isWhole: true },
} as const;

/** Throws with one sentence when an argument is wrong. */
export function parseSoakArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'soak'; readonly options: SoakOptions } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '2' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  return {
    kind: 'soak',
    options: {
      minutes: parseNumberOption('minutes', values.minutes),
      seed: parseNumberOption('seed', values.seed),
      workers: parseNumberOption('workers', values.workers),
    },
  };
}

function parseNumberOption(option: keyof typeof OPTION_RANGES, text: string): number {
  const { least, most, isWhole } = OPTION_RANGES[option];
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < least || value > most || (isWhole && !Number.isInteger(value))) {
    throw new Error(`--${option} is "${text}"; use a ${isWhole ? 'whole ' : ''}number from ${least} to ${most}`);
  }
  return value;
}
