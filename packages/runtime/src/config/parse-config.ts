import { WeirError } from '../errors.ts';

/**
 * Parses every setting of `spec` from `env` into a frozen object with the same names. Throws one `ConfigError` with all
 * mistakes. Pure: a `main.ts` passes `process.env`; a command passes its flags, with variables named like `--workers`.
 */
export function parseConfig<Spec extends Readonly<Record<string, Setting<unknown>>>>(
  spec: Spec,
  env: Readonly<Record<string, string | undefined>>,
): ConfigOf<Spec> {
  const values: [string, unknown][] = [];
  const mistakes: ConfigMistake[] = [];
  for (const [name, { variable, read }] of Object.entries(spec)) {
    const result = read(env[variable]);
    if (result.kind === 'value') values.push([name, result.value]);
    else mistakes.push(result.mistake);
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return Object.freeze(Object.fromEntries(values)) as ConfigOf<Spec>;
}

export type ConfigOf<Spec> = { readonly [Name in keyof Spec]: Spec[Name] extends Setting<infer T> ? T : never };

/** The error for a wrong configuration. Its message lists all mistakes, one per line. */
export class ConfigError extends WeirError<'CONFIG_INVALID'> {
  readonly mistakes: readonly ConfigMistake[];

  constructor(mistakes: readonly ConfigMistake[]) {
    super('CONFIG_INVALID', mistakes.map(describeMistake).join('\n'));
    this.mistakes = mistakes;
  }
}

function describeMistake({ variable, redactedValue, allowed }: ConfigMistake): string {
  return redactedValue === undefined
    ? `${variable} is not set; use ${allowed}`
    : `${variable} is ${redactedValue}; use ${allowed}`;
}

/** A variable of a configuration, and the function that parses its text. */
export interface Setting<T> {
  readonly variable: string;
  read(text: string | undefined): SettingResult<T>;
}

export type SettingResult<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'mistake'; readonly mistake: ConfigMistake };

export interface ConfigMistake {
  readonly variable: string;
  /** The wrong text without secrets, for printing; undefined if the variable is not set. */
  readonly redactedValue: string | undefined;
  readonly allowed: string;
}

/** How the values of one kind are written and parsed. */
export interface SettingFormat<T> {
  /** Describes the format. An error message prints this text after the word `use`. */
  readonly allowed: string;
  /** Returns undefined for invalid text. */
  parse(text: string): T | undefined;
  /** Returns an invalid text without secrets, for printing. By default the text is printed in quotes. */
  redact?(text: string): string;
}

export interface SettingOptions<T> {
  /** The value if the variable is unset or empty. A setting without a default is required. */
  readonly default?: T;
}

/**
 * Creates a setting with the given format. An empty variable counts as unset, because charts render `value: ""` for an
 * unset value.
 */
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

/** Makes a setting optional: its value is undefined if the variable is unset. */
export function optional<T>(required: Setting<T>): Setting<T | undefined> {
  return {
    variable: required.variable,
    read: (text) => (isUnset(text) ? { kind: 'value', value: undefined } : required.read(text)),
  };
}

function isUnset(text: string | undefined): text is undefined | '' {
  return text === undefined || text.trim() === '';
}
