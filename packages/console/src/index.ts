export type { Explanation } from './fleet/explanation.ts';
export type { FleetProblem } from './fleet/problem-list.ts';
export { type ProblemChangeSet, type WatchProblemsOptions, watchProblems } from './fleet/watch-problems.ts';
export type { LiveFrame, ServiceRate, TenantRate } from './rates/live-frame.ts';
export type { Rate } from './rates/rates.ts';
export { type ConsoleAuth, type ConsoleOptions, type RunningConsole, startConsole } from './start-console.ts';
export {
  type KubernetesSuspensionWriterOptions,
  kubernetesSuspensionWriter,
} from './suspensions/kubernetes-suspensions.ts';
export { type StoreSuspensionWriterOptions, storeSuspensionWriter } from './suspensions/store-suspensions.ts';
export type { SuspensionItem } from './suspensions/suspension-item.ts';
export type { SuspensionRequest, SuspensionWriter } from './suspensions/suspension-writer.ts';
export type { UsageItem } from './usage/usage-items.ts';
