import { MAX_NODE_TIMER_MS } from '../clock.ts';
import { Secret } from '../secret.ts';
import { type HostPort, parseHostPort } from './addresses.ts';
import { type Setting, type SettingFormat, type SettingOptions, setting } from './parse-config.ts';

export interface TextOptions extends SettingOptions<string> {
  readonly pattern?: RegExp;
  /** Describes in error messages what `pattern` allows. */
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

/**
 * Creates a setting for a comma-separated list. Ignores blanks around items, and empty items. One invalid item makes
 * the list invalid.
 */
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

/** The item format of a `list` of arbitrary strings. */
export const anyText: SettingFormat<string> = { allowed: 'a text', parse: (raw) => raw };

/**
 * Creates a setting for the path of a file or directory. Refuses a leading `~`, because only a shell replaces `~`; here
 * it would name a directory called `~`.
 */
export function path(variable: string, options: SettingOptions<string> = {}): Setting<string> {
  const parse = (raw: string): string | undefined => (/^~|\0/.test(raw.trim()) ? undefined : raw.trim());
  return setting(variable, { allowed: 'a path, absolute or relative to the working directory (no ~)', parse }, options);
}

/**
 * Parses and formats durations. The caller passes the functions of `@weir/model`, because this package does not import
 * that package.
 */
export interface DurationGrammar {
  /** Returns milliseconds, or undefined if the text is not a duration. */
  readonly parseDuration: (text: string) => number | undefined;
  readonly formatDuration: (ms: number) => string;
}

export interface DurationOptions extends SettingOptions<number> {
  readonly grammar: DurationGrammar;
  readonly minMs?: number;
  readonly maxMs?: number;
}

/**
 * Creates a setting for a duration such as `500ms`, `5s`, `10m` or `1h30m`, in milliseconds. The default maximum is the
 * longest delay of a Node timer.
 */
export function duration(variable: string, options: DurationOptions): Setting<number> {
  const { minMs = 0, maxMs = MAX_NODE_TIMER_MS, grammar } = options;
  const { parseDuration, formatDuration } = grammar;
  const range =
    maxMs === MAX_NODE_TIMER_MS
      ? `at least ${formatDuration(minMs)}`
      : `${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const parse = (raw: string): number | undefined => {
    const ms = parseDuration(raw.trim());
    return ms !== undefined && ms >= minMs && ms <= maxMs ? ms : undefined;
  };
  return setting(variable, { allowed: `a duration such as 500ms, 5s or 10m, ${range}`, parse }, options);
}

const HOST_PORT_FORMAT = 'HOST:PORT such as 127.0.0.1:8687 or [::1]:8687';

export function hostPort(variable: string, options: SettingOptions<HostPort> = {}): Setting<HostPort> {
  return setting(variable, { allowed: HOST_PORT_FORMAT, parse: (raw) => parseHostPort(raw.trim()) }, options);
}

/** Creates a setting for a listen address or `off`. */
export function hostPortOrOff(
  variable: string,
  options: SettingOptions<HostPort | 'off'> = {},
): Setting<HostPort | 'off'> {
  const parse = (raw: string): HostPort | 'off' | undefined =>
    raw.trim() === 'off' ? 'off' : parseHostPort(raw.trim());
  return setting(variable, { allowed: `${HOST_PORT_FORMAT}, or off`, parse }, options);
}

/** Creates a setting for a password or token. Removes one trailing line break, because editors and `echo` add one. */
export function secret(variable: string, options: SettingOptions<Secret> = {}): Setting<Secret> {
  const parse = (raw: string): Secret | undefined => {
    const value = raw.replace(/\r?\n$/, '');
    return /\p{Cc}/u.test(value) ? undefined : new Secret(value);
  };
  return setting(
    variable,
    { allowed: 'a secret without control characters', parse, redact: () => '[redacted]' },
    options,
  );
}
