import { WeirError } from '../weir-error.ts';
import type { ConfigMistake, Setting } from './setting.ts';

export type ConfigOf<Spec> = { readonly [Name in keyof Spec]: Spec[Name] extends Setting<infer T> ? T : never };

/** All that is wrong with a configuration at once, one mistake per line. */
export class ConfigError extends WeirError<'CONFIG_INVALID'> {
  readonly mistakes: readonly ConfigMistake[];

  constructor(mistakes: readonly ConfigMistake[]) {
    super('CONFIG_INVALID', mistakes.map(describeMistake).join('\n'));
    this.mistakes = mistakes;
  }
}

/**
 * Reads every setting of `spec` from `env` into a frozen object of the same names, or throws one `ConfigError` with all mistakes.
 * Pure: `env` is `process.env` in a `main.ts`, or the flags of a command when the variables are named like `--workers`.
 */
export function parseConfig<Spec extends Readonly<Record<string, Setting<unknown>>>>(
  spec: Spec,
  env: Readonly<Record<string, string | undefined>>,
): ConfigOf<Spec> {
  const values: [string, unknown][] = [];
  const mistakes: ConfigMistake[] = [];
  for (const [name, setting] of Object.entries(spec)) {
    const reading = setting.read(env[setting.variable]);
    if (reading.kind === 'value') values.push([name, reading.value]);
    else mistakes.push(reading.mistake);
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return Object.freeze(Object.fromEntries(values)) as ConfigOf<Spec>;
}

function describeMistake({ variable, redactedValue, allowed }: ConfigMistake): string {
  return redactedValue === undefined
    ? `${variable} is not set; use ${allowed}`
    : `${variable} is ${redactedValue}; use ${allowed}`;
}
