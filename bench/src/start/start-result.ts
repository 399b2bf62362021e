import type { RunMetadata } from '../report/run-facts.ts';
export type StartResult = RunMetadata & {
  readonly services: number;
  readonly workers: number;
  readonly rows: readonly ProxyStartRow[];
};

export type ProxyStartRow = {
  /** Of the table. */
  readonly entries: number;
  /** Services of the node, each with one listener. */
  readonly here: number;
  /** As many were asked for; fewer: this machine has not the descriptors. */
  readonly wanted: number;
  /** Each of a process of its own. */
  readonly starts: readonly ProxyStartReading[];
  /** Of the last of them, at rest. */
  readonly scrapes: readonly ScrapeReading[];
  /** The longest that somebody waited for its main thread, in milliseconds, while nothing but heartbeats went on. */
  readonly restMs: number;
};

export type ProxyStartReading = {
  /** From the start of the process until each listener is open at all workers. */
  readonly servingMs: number;
  /** CPU time of all threads until then. */
  readonly cpuMs: number;
  /** How long its main thread was ready to run until then and had no processor: it has no time to lose. */
  readonly queuedMs: number;
  readonly peakKiB: number;
};

export type ScrapeReading = {
  readonly ms: number;
  readonly bytes: number;
  /** The longest that somebody else waited for the main thread meanwhile. */
  readonly waitMs: number;
};
