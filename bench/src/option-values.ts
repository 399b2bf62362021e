import { parseArgs } from 'node:util';

type OptionValues<Defaulted extends string, Optional extends string> = Readonly<
  Record<Defaulted, string> & Partial<Record<Optional, string>>
>;

export type OptionNames<Defaulted extends string, Optional extends string> = {
  /** Default values by the name of the option. */
  readonly defaults: Readonly<Record<Defaulted, string>>;
  /** Names of the options that have no default value. */
  readonly optional?: readonly Optional[];
};

/** Returns the text of each option, or `help` if `--help` is among the arguments. Throws if an argument is unknown. */
export function parseOptions<Defaulted extends string, Optional extends string = never>(
  args: readonly string[],
  { defaults, optional = [] }: OptionNames<Defaulted, Optional>,
): OptionValues<Defaulted, Optional> | 'help' {
  const names = [...Object.keys(defaults), ...optional];
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return 'help';
  if (positionals[0] !== undefined) throw new Error(`unexpected argument "${positionals[0]}"`);
  return { ...defaults, ...values } as OptionValues<Defaulted, Optional>;
}

export type NumberRange = { readonly min: number; readonly max: number };

/** Parses a whole number. Throws if the text is not a whole number within the range. */
export function parseIntegerOption(option: string, text: string, { min, max }: NumberRange): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new Error(`invalid --${option} "${text}": expected a whole number from ${min} to ${max}`);
  }
  return value;
}

/** Parses a decimal number. Throws if the text is not a decimal number within the range. */
export function parseNumberOption(option: string, text: string, { min, max }: NumberRange): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < min || value > max) {
    throw new Error(`invalid --${option} "${text}": expected a number from ${min} to ${max}`);
  }
  return value;
}

/** Parses whole numbers separated by commas; returns them ascending, without duplicates. */
export function parseIntegerListOption(option: string, text: string, range: NumberRange): number[] {
  const values = text.split(',').map((item) => parseIntegerOption(option, item.trim(), range));
  return [...new Set(values)].sort((a, b) => a - b);
}

/** Parses names separated by commas; returns them in the order of `allNames`, without duplicates. */
export function parseNameListOption<Name extends string>(
  option: string,
  text: string,
  allNames: readonly Name[],
): Name[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !allNames.some((known) => known === name));
  if (unknown !== undefined) {
    throw new Error(`invalid --${option} "${unknown}": expected names out of ${allNames.join(', ')}`);
  }
  return allNames.filter((name) => names.includes(name));
}
