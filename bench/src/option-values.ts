export type IntegerRange = { readonly least: number; readonly most: number };

/** The whole number that an option says; throws with one sentence. */
export function parseIntegerOption(option: string, text: string, { least, most }: IntegerRange): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`--${option} is "${text}"; use a whole number from ${least} to ${most}`);
  }
  return value;
}

/** Several of them, comma separated: ascending, each once. */
export function parseIntegerListOption(option: string, text: string, range: IntegerRange): number[] {
  const values = text.split(',').map((each) => parseIntegerOption(option, each.trim(), range));
  return [...new Set(values)].sort((a, b) => a - b);
}

/** Some of the names, comma separated, in the order of `all`; throws with one sentence. */
export function parseNameListOption<T extends string>(option: string, text: string, all: readonly T[]): T[] {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !all.some((each) => each === name));
  if (wrong !== undefined) throw new Error(`--${option} names "${wrong}"; use some of ${all.join(', ')}`);
  return all.filter((name) => names.includes(name));
}
