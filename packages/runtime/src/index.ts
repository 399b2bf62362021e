export { ADMIN_TOKEN_FORMAT } from './admin/admin-access.ts';
export { type AdminRoute, type AdminStream, jsonResponse } from './admin/admin-handler.ts';
export { type AdminServer, type AdminServerOptions, createAdminServer } from './admin/admin-server.ts';
export {
  createProbeSocket,
  listenOnUnixSocket,
  type ProbeSocketOptions,
  type UnixSocket,
} from './admin/unix-socket.ts';
export { ensureDirectory, readFileIfPresent, writeFileAtomic, writeFileUnsynced } from './atomic-file.ts';
export { type BackoffOptions, backoffMs } from './backoff.ts';
export { type Clock, systemClock, type Timer, wait } from './clock.ts';
export {
  formatHostPort,
  type HostPort,
  isLoopback,
  isProxyUrl,
  PROXY_URL_FORMAT,
  parseHostPort,
  redactUrl,
} from './config/addresses.ts';
export {
  ConfigError,
  type ConfigMistake,
  type ConfigOf,
  optional,
  parseConfig,
  type Setting,
  type SettingFormat,
  type SettingOptions,
  type SettingResult,
  setting,
} from './config/parse-config.ts';
export {
  anyText,
  boolean,
  type DurationGrammar,
  type DurationOptions,
  duration,
  hostPort,
  hostPortOrOff,
  type IntegerOptions,
  integer,
  list,
  oneOf,
  path,
  secret,
  type TextOptions,
  text,
} from './config/settings.ts';
export {
  errorMessage,
  type FileOperation,
  fileError,
  isAbort,
  type ListenErrorOptions,
  listenError,
  RUNTIME_ERRORS,
  type RuntimeErrorCode,
  UsageError,
  WeirError,
} from './errors.ts';
export { Health, type HealthCheck, type HealthKind, type HealthReport } from './health.ts';
export { CertificateReloader } from './http/certificate-reloader.ts';
export { createHttpServer } from './http/create-http-server.ts';
export { HttpClient } from './http/http-client.ts';
export {
  createLogger,
  LOG_LEVELS,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  logLevel,
  silentLogger,
} from './log.ts';
export { Loop, type LoopOptions } from './loop.ts';
export { ManualClock } from './manual-clock.ts';
export type {
  CollectedHistogramOptions,
  CollectedOptions,
  Counter,
  Gauge,
  Histogram,
  HistogramOptions,
  HistogramSample,
  Labels,
  MetricOptions,
  Metrics,
  Sample,
} from './metrics/contract.ts';
export { type LineOutput, standardOutput } from './process/line-output.ts';
export { packageVersion } from './process/package-version.ts';
export {
  type ProcessControl,
  type ProcessHost,
  type ProcessPlan,
  runProcess,
} from './process/run-process.ts';
export { type Part, type RunningParts, startParts } from './process/start-parts.ts';
export { Sealer } from './sealer.ts';
export { Secret } from './secret.ts';
