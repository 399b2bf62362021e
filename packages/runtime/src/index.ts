export { type BackoffOptions, backoffMs } from './backoff.ts';
export { type Clock, systemClock, type Timer } from './clock/clock.ts';
export { ManualClock } from './clock/manual-clock.ts';
export { wait } from './clock/wait.ts';
export { formatDuration, parseDuration } from './config/duration.ts';
export { formatHostPort, type HostPort, parseHostPort } from './config/host-port.ts';
export { ConfigError, type ConfigOf, parseConfig } from './config/parse-config.ts';
export {
  anyText,
  boolean,
  integer,
  list,
  oneOf,
  path,
  type RangeOptions,
  type TextOptions,
  text,
} from './config/plain-settings.ts';
export { redactUrl } from './config/redact-url.ts';
export {
  type ConfigMistake,
  type Format,
  optional,
  type Reading,
  type Setting,
  type SettingOptions,
  setting,
} from './config/setting.ts';
export {
  type DurationOptions,
  duration,
  hostPort,
  hostPortOrOff,
  secret,
  type UrlOptions,
  url,
} from './config/world-settings.ts';
export { errorMessage } from './error-message.ts';
export {
  createLogger,
  LOG_LEVELS,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  logLevel,
  silentLogger,
} from './log.ts';
export { Secret } from './secret.ts';
export { UsageError, WeirError } from './weir-error.ts';
