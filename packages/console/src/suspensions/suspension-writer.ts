import type { Cutoff, SuspensionTarget } from '@weir/model';

export interface SuspensionRequest {
  readonly target: SuspensionTarget;
  /** Shown to the tenant. */
  readonly message: string;
  /** Milliseconds since the epoch; null: until somebody resumes. */
  readonly until: number | null;
  /** Who asks; null: nobody was asked who they are. */
  readonly by: string | null;
}

/** Where the console writes what a person asks for. */
export interface SuspensionWriter {
  /** In force when it resolves; asking again for the same target replaces message and end. */
  suspend(request: SuspensionRequest): Promise<Cutoff>;
  /** Lifts one that did not come from a file; rejects with `ApiError` when it would not stay lifted. */
  resume(cutoff: Cutoff): Promise<void>;
}
