/** A proxy that is measured: a process of its own, in front of the same backends as all others. */
export type Subject = AsyncDisposable & {
  readonly name: SubjectName;
  /** Which program, how it was set up: for who reads the results. */
  readonly description: string;
  readonly pid: number;
  /** Its ports at 127.0.0.1. */
  readonly ports: BackendPorts;
  /** What it has printed, for messages. */
  readonly output?: () => string;
  /** Gives back memory that nobody refers to. Absent: it keeps none. */
  readonly collectGarbage?: () => Promise<void>;
  /** What it does not relay, and why, in words. */
  readonly unsupported?: Readonly<Partial<Record<BackendName, string>>>;
  /** What its own ledger says that it has relayed so far. Absent: it keeps none. */
  readonly ledger?: () => Promise<Ledger>;
};

/**
 * `answers`: a small HTTP answer per request. `bulk`: a stream for as long as asked. `echo`: TCP, and `datagrams`: UDP, what is
 * sent comes back.
 */
export const BACKEND_NAMES = ['answers', 'bulk', 'echo', 'datagrams'] as const;
export type BackendName = (typeof BACKEND_NAMES)[number];
export type BackendPorts = Readonly<Record<BackendName, number>>;
export type Ledger = Readonly<Record<BackendName, TrafficTotals>>;

export type TrafficTotals = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
};

/** A record with one value per backend. */
export function perBackend<T>(value: (name: BackendName) => T): Record<BackendName, T> {
  return Object.fromEntries(BACKEND_NAMES.map((name) => [name, value(name)])) as Record<BackendName, T>;
}

/** Who may be asked to take part. */
export const SELECTABLE_SUBJECTS = ['weir', 'haproxy', 'nginx', 'envoy', 'pipe'] as const;
export type SelectableSubjectName = (typeof SELECTABLE_SUBJECTS)[number];
/** Those that a scenario adds by itself; `direct`: nobody in between. */
export type SubjectName = SelectableSubjectName | 'weir-limits' | 'weir-2-workers' | 'direct';

export function isSelectableSubject(name: string): name is SelectableSubjectName {
  return (SELECTABLE_SUBJECTS as readonly string[]).includes(name);
}
