import { Secret } from '../secret.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { type HostPort, parseHostPort } from './host-port.ts';
import { type Setting, type SettingOptions, setting } from './setting.ts';

/** The longest that one timer of Node can wait: a longer one would fire at once. */
const MAX_DURATION_MS = 2_147_483_647;

export interface DurationOptions extends SettingOptions<number> {
  readonly minMs?: number;
  readonly maxMs?: number;
}

/** Milliseconds out of `500ms`, `5s`, `10m`, `1h30m`. */
export function duration(variable: string, options: DurationOptions = {}): Setting<number> {
  const { minMs = 0, maxMs = MAX_DURATION_MS } = options;
  const range =
    maxMs === MAX_DURATION_MS
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

/** An address to listen on, or `off`. */
export function hostPortOrOff(
  variable: string,
  options: SettingOptions<HostPort | 'off'> = {},
): Setting<HostPort | 'off'> {
  const parse = (raw: string): HostPort | 'off' | undefined =>
    raw.trim() === 'off' ? 'off' : parseHostPort(raw.trim());
  return setting(variable, { allowed: `${HOST_PORT_FORMAT}, or off`, parse }, options);
}

/** A password or token; one line break at the end is taken off, because files and `echo` add it. */
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
