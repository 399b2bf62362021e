/** A measured proxy: one process in front of the same backends as every other subject. */
export type Subject = AsyncDisposable & {
  readonly name: SubjectName;
  /** Program and configuration, for the readers of results. */
  readonly description: string;
  readonly pid: number;
  /** Listening ports at 127.0.0.1. */
  readonly ports: BackendPorts;
  /** Output of the process, for error messages. */
  readonly output?: () => string;
  /** Runs the garbage collector; absent if the program has none. */
  readonly collectGarbage?: () => Promise<void>;
  /** Backends that the subject does not relay to, with the reason. */
  readonly unsupported?: Readonly<Partial<Record<BackendName, string>>>;
  /** Reads the traffic that the subject itself has counted; absent if the subject has no ledger. */
  readonly readLedger?: () => Promise<Ledger>;
};

/** `http`: small HTTP responses. `stream`: one stream of the requested size. `echo`: echo by TCP. `datagrams`: echo by UDP. */
export const BACKEND_NAMES = ['http', 'stream', 'echo', 'datagrams'] as const;
export type BackendName = (typeof BACKEND_NAMES)[number];
export type BackendPorts = Readonly<Record<BackendName, number>>;
export type Ledger = Readonly<Record<BackendName, TrafficTotals>>;

export type TrafficTotals = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
};

export function perBackend<T>(value: (name: BackendName) => T): Record<BackendName, T> {
  return Object.fromEntries(BACKEND_NAMES.map((name) => [name, value(name)])) as Record<BackendName, T>;
}

/** Subjects that the option --subjects accepts. */
export const SELECTABLE_SUBJECTS = ['weir', 'haproxy', 'nginx', 'envoy', 'pipe'] as const;
export type SelectableSubjectName = (typeof SELECTABLE_SUBJECTS)[number];
/** Subjects that can be started; scenarios add the variants of Weir. */
export type StartableSubjectName = SelectableSubjectName | 'weir-limits' | 'weir-2-workers';
/** `direct` is the backend without a proxy. */
export type SubjectName = StartableSubjectName | 'direct';
