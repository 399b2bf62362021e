import type { SubjectName } from './subject-name.ts';

/** A proxy that is measured: a process of its own, in front of the same two backends as all others. */
export type Subject = AsyncDisposable & {
  readonly name: SubjectName;
  /** Which program, how it was set up: for who reads the results. */
  readonly description: string;
  readonly pid: number;
  /** Its ports at 127.0.0.1. */
  readonly ports: Ports;
  /** What its own ledger says that it has relayed so far. Absent: it keeps none. */
  readonly ledger?: () => Promise<Ledger>;
};

/** `answers`: a small HTTP answer per request. `bulk`: a stream for as long as asked. */
export type Ports = { readonly answers: number; readonly bulk: number };

export type Ledger = { readonly answers: Metered; readonly bulk: Metered };

export type Metered = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
};
