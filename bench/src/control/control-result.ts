import type { RunFacts } from '../report/run-facts.ts';
import type { Started } from './control-process.ts';
import type { ChangeScenario } from './scenario-name.ts';

export type ControlResult = RunFacts & {
  readonly rounds: number;
  readonly starts: readonly StartRow[];
  readonly changes: readonly ChangeRow[];
  /** What ended a size before its time, in words; what was measured until then is kept. */
  readonly failures: readonly string[];
};

export type StartRow = {
  readonly services: number;
  /** Each in a process of its own. */
  readonly controllers: readonly Started[];
  /** Of one follower that reads the whole table, while nothing else goes on. */
  readonly followerMs: number;
  readonly followerBytes: number;
  /** Resident, of the controller, after all changes. */
  readonly afterKiB?: number;
};

export type ChangeRow = {
  readonly services: number;
  readonly followers: number;
  readonly scenario: ChangeScenario;
  readonly changes: readonly ChangeReading[];
  /** False: the run failed before the followers could be held against what the controller has decided. */
  readonly isProved: boolean;
};

/** Of one change: milliseconds from the source until half of the followers have applied it, and until all have. */
export type ChangeReading = {
  readonly halfMs: number;
  readonly allMs: number;
  /** Written by the controller, and read by each follower. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
};
