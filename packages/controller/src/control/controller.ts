import type { FleetSettings, Problem, TranslatorOutput } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { Leadership } from '../leader/leadership.ts';
import type { StatusSink } from '../status/status-sink.ts';
import type { SuspensionObjectWriter } from '../suspension/suspension-writer.ts';
import type { UsageArchive } from '../usage/usage-archive.ts';
import type { Source } from '../watch/source.ts';
import type { ControllerMetrics } from './controller-metrics.ts';

export interface ControllerOptions {
  readonly source: Source;
  readonly store: Store;
  readonly settings: FleetSettings;
  readonly log: Logger;
  readonly clock: Clock;
  /** Default: there is no other. */
  readonly leader?: Leadership;
  /** Default: nobody is told. */
  readonly status?: StatusSink;
  /** Where usage outlives the store; default: nowhere, and a wiped store begins with what this process remembers. */
  readonly archive?: UsageArchive;
  /** Default: a Suspension whose `until` passed stays where it is, and a cut-off that was made in the store stays there. */
  readonly suspensions?: SuspensionObjectWriter;
  /** Default: nobody reads any. */
  readonly metrics?: ControllerMetrics;
}

export interface Controller {
  /** Resolves once all that the source said so far is published (or another leads). */
  idle(): Promise<void>;
  /** Of the last decision; before one, those of the source. */
  problems(): readonly Problem[];
  /** The last decision; undefined before the first, and while another leads. */
  translation(): TranslatorOutput | undefined;
  close(): Promise<void>;
}
