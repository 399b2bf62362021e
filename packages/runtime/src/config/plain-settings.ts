import { type Setting, type SettingFormat, type SettingOptions, setting } from './setting.ts';

export interface TextOptions extends SettingOptions<string> {
  readonly pattern?: RegExp;
  /** What `pattern` means, in words. */
  readonly allowed?: string;
}

export function text(variable: string, options: TextOptions = {}): Setting<string> {
  const { pattern, allowed = 'a text' } = options;
  const parse = (raw: string): string | undefined => {
    const value = raw.trim();
    return pattern === undefined || pattern.test(value) ? value : undefined;
  };
  return setting(variable, { allowed, parse }, options);
}

export interface IntegerOptions extends SettingOptions<number> {
  readonly min: number;
  readonly max: number;
}

export function integer(variable: string, options: IntegerOptions): Setting<number> {
  const { min, max } = options;
  const parse = (raw: string): number | undefined => {
    const value = /^[+-]?\d{1,16}$/.test(raw.trim()) ? Number(raw) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return setting(variable, { allowed: `an integer from ${min} to ${max}`, parse }, options);
}

const BOOLEAN_WORDS: Readonly<Record<string, boolean>> = { true: true, '1': true, false: false, '0': false };

export function boolean(variable: string, options: SettingOptions<boolean> = {}): Setting<boolean> {
  const parse = (raw: string): boolean | undefined => {
    const word = raw.trim().toLowerCase();
    return Object.hasOwn(BOOLEAN_WORDS, word) ? BOOLEAN_WORDS[word] : undefined;
  };
  return setting(variable, { allowed: 'true or false', parse }, options);
}

export function oneOf<const Choice extends string>(
  variable: string,
  choices: readonly Choice[],
  options: SettingOptions<NoInfer<Choice>> = {},
): Setting<Choice> {
  const parse = (raw: string): Choice | undefined => choices.find((choice) => choice === raw.trim());
  return setting<Choice>(variable, { allowed: `one of ${choices.join(', ')}`, parse }, options);
}

/** A comma-separated list; blanks around the items and empty items are left out, one wrong item makes the whole wrong. */
export function list<T = string>(
  variable: string,
  item: SettingFormat<T>,
  options: SettingOptions<readonly T[]> = {},
): Setting<readonly T[]> {
  const parse = (raw: string): readonly T[] | undefined => {
    const texts = raw.split(',').map((part) => part.trim());
    const values = texts.filter((part) => part !== '').map((part) => item.parse(part));
    return values.includes(undefined) ? undefined : Object.freeze(values as T[]);
  };
  return setting(variable, { allowed: `a comma-separated list; each item: ${item.allowed}`, parse }, options);
}

/** Items of a `list` that are texts. */
export const anyText: SettingFormat<string> = { allowed: 'a text', parse: (raw) => raw };

/** A file or directory. `~` is refused: no shell expands it here, and a directory called `~` would appear instead. */
export function path(variable: string, options: SettingOptions<string> = {}): Setting<string> {
  const parse = (raw: string): string | undefined => (/^~|\0/.test(raw.trim()) ? undefined : raw.trim());
  return setting(variable, { allowed: 'a path, absolute or relative to the working directory (no ~)', parse }, options);
}
