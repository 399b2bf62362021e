import { parseIntegerOption, parseNumberOption, parseOptions } from '../option-values.ts';

export type SoakOptions = { readonly minutes: number; readonly seed: number; readonly workers: number };

export function parseSoakArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'soak'; readonly options: SoakOptions } {
  const values = parseOptions(args, { defaults: { minutes: '10', seed: '1', workers: '2' } });
  if (values === 'help') return { kind: 'help' };
  return {
    kind: 'soak',
    options: {
      minutes: parseNumberOption('minutes', values.minutes, { min: 0.1, max: 240 }),
      seed: parseIntegerOption('seed', values.seed, { min: 0, max: 2 ** 32 - 1 }),
      workers: parseIntegerOption('workers', values.workers, { min: 1, max: 16 }),
    },
  };
}
