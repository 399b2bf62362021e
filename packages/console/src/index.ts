export type { LiveFrame, ServiceRate, TenantRate } from './api/live-events.ts';
export type { Explanation } from './fleet/explanation.ts';
export type { FleetProblem } from './fleet/problems.ts';
export { type ProblemChangeSet, type WatchProblemsOptions, watchProblems } from './fleet/problems.ts';
export type { Rate } from './rates/rate-history.ts';
export { type ConsoleAuth, type ConsoleOptions, type RunningConsole, startConsole } from './start-console.ts';
export {
  type KubernetesSuspensionWriterOptions,
  kubernetesSuspensionWriter,
} from './suspensions/kubernetes-suspension-writer.ts';
export { type StoreSuspensionWriterOptions, storeSuspensionWriter } from './suspensions/store-suspension-writer.ts';
export type { SuspensionAuditItem, SuspensionItem } from './suspensions/suspension-item.ts';
export type { SuspensionRequest, SuspensionWriter } from './suspensions/suspension-writer.ts';
export type { UsageItem } from './usage/usage-items.ts';
export type { UsageSeriesItem } from './usage/usage-series.ts';
