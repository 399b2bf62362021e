export { type AdminServer, type AdminServerOptions, createAdminServer } from './admin/admin-server.ts';
export type { AdminRoute } from './admin/answer.ts';
export { createHttpServer } from './admin/create-http-server.ts';
export { CertificateReloader } from './admin/key-pair.ts';
export { createProbeSocket, type ProbeSocketOptions } from './admin/probe-socket.ts';
export { listenOnUnixSocket, type UnixSocket } from './admin/socket-file.ts';
export { ADMIN_TOKEN_FORMAT } from './admin/token-check.ts';
export { ensureDirectory, readFileIfPresent, writeFileAtomic } from './atomic-file.ts';
export { type BackoffOptions, backoffMs } from './backoff.ts';
export { type Clock, systemClock, type Timer } from './clock/clock.ts';
export { ManualClock } from './clock/manual-clock.ts';
export { wait } from './clock/wait.ts';
export { formatDuration, parseDuration } from './config/duration.ts';
export { formatHostPort, type HostPort, parseHostPort } from './config/host-port.ts';
export { isLoopback } from './config/loopback.ts';
export { ConfigError, type ConfigOf, parseConfig } from './config/parse-config.ts';
export {
  anyText,
  boolean,
  type IntegerOptions,
  integer,
  list,
  oneOf,
  path,
  type TextOptions,
  text,
} from './config/plain-settings.ts';
export { isProxyUrl, PROXY_URL_FORMAT } from './config/proxy-url.ts';
export { redactUrl } from './config/redact-url.ts';
export {
  type ConfigMistake,
  optional,
  type Setting,
  type SettingFormat,
  type SettingOptions,
  type SettingResult,
  setting,
} from './config/setting.ts';
export {
  type DurationOptions,
  duration,
  hostPort,
  hostPortOrOff,
  secret,
} from './config/world-settings.ts';
export { RUNTIME_ERRORS, type RuntimeErrorCode } from './error-codes.ts';
export { errorMessage } from './error-message.ts';
export { type FileOperation, fileError } from './file-error.ts';
export { createHealth, type Health, type HealthCheck, type HealthKind, type HealthReport } from './health.ts';
export { isAbort } from './is-abort.ts';
export { type ListenErrorOptions, listenError } from './listen-error.ts';
export {
  createLogger,
  LOG_LEVELS,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  logLevel,
  silentLogger,
} from './log.ts';
export { createLoop, type Loop, type LoopOptions } from './loop.ts';
export type {
  CollectedOptions,
  Counter,
  Gauge,
  Histogram,
  HistogramOptions,
  Labels,
  MetricOptions,
  Metrics,
  Sample,
} from './metrics/contract.ts';
export { packageVersion } from './package-version.ts';
export { exitStatusFor } from './process/exit-for.ts';
export { type ProcessControl, type ProcessHost, type ProcessPlan, runProcess } from './process/run-process.ts';
export { type Part, type RunningParts, startParts } from './process/start-parts.ts';
export { Sealer } from './sealer.ts';
export { Secret } from './secret.ts';
export { HttpClient } from './server-connection.ts';
export { UsageError, WeirError } from './weir-error.ts';
