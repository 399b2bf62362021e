import { WeirError } from '../errors.ts';

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

/** One variable of a configuration: where it stands, and how its text becomes a value. */
export interface Setting<T> {
  readonly variable: string;
  read(text: string | undefined): SettingResult<T>;
}

export type SettingResult<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'mistake'; readonly mistake: ConfigMistake };

export interface ConfigMistake {
  readonly variable: string;
  /** What stood there, as far as it may be shown; undefined: nothing stood there. */
  readonly redactedValue: string | undefined;
  readonly allowed: string;
}

/** How one kind of value is written. `parse` answers undefined for what is not allowed. */
export interface SettingFormat<T> {
  readonly allowed: string;
  parse(text: string): T | undefined;
  /** What of a wrong text may be printed; absent: all of it. */
  redact?(text: string): string;
}

export interface SettingOptions<T> {
  /** What counts when the variable is unset or empty; without it the variable is required. */
  readonly default?: T;
}

/** Makes a setting of its own kind. Empty counts as unset, because charts write `value: ""` for what nobody chose. */
export function setting<T>(variable: string, format: SettingFormat<T>, options: SettingOptions<T> = {}): Setting<T> {
  const mistake = (redactedValue: string | undefined): SettingResult<T> => ({
    kind: 'mistake',
    mistake: { variable, redactedValue, allowed: format.allowed },
  });
  return {
    variable,
    read(text) {
      if (isUnset(text))
        return options.default === undefined ? mistake(undefined) : { kind: 'value', value: options.default };
      const value = format.parse(text);
      if (value !== undefined) return { kind: 'value', value };
      return mistake(format.redact === undefined ? JSON.stringify(text) : format.redact(text));
    },
  };
}

/** The same setting, but undefined when the variable is unset. */
export function optional<T>(wanted: Setting<T>): Setting<T | undefined> {
  return {
    variable: wanted.variable,
    read: (text) => (isUnset(text) ? { kind: 'value', value: undefined } : wanted.read(text)),
  };
}

function isUnset(text: string | undefined): text is undefined | '' {
  return text === undefined || text.trim() === '';
}
