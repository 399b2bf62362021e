import type { RunMetadata } from '../report/run-facts.ts';
import type { ControllerStart } from './control-process.ts';
import type { ChangeScenario } from './scenario-name.ts';

export type ControlResult = RunMetadata & {
  readonly rounds: number;
  readonly starts: readonly ControllerStartRow[];
  readonly changes: readonly ChangeRow[];
  /** What ended a size before its time, in words; what was measured until then is kept. */
  readonly failures: readonly string[];
};

export type ControllerStartRow = {
  readonly services: number;
  /** Each in a process of its own. */
  readonly controllers: readonly ControllerStart[];
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
  readonly changes: readonly ControlChangeReading[];
  /** False: the run failed before the followers could be held against what the controller has decided. */
  readonly isProved: boolean;
};

/** Of one change: milliseconds from the source until half of the followers have applied it, and until all have. */
export type ControlChangeReading = {
  readonly halfMs: number;
  readonly allMs: number;
  /** Written by the controller, and read by each follower. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
};
