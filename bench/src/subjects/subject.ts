import type { CpuTime } from '../measure/proc-stats.ts';

/** A measured proxy, which is one process. All subjects relay to the same backends. `Backend` is the type of their names. */
export type Subject<Backend extends string = BackendName> = AsyncDisposable & {
  readonly name: SubjectName;
  /** Description of the program and its configuration, for the readers of results. */
  readonly description: string;
  readonly pid: number;
  /** Returns the CPU time that readings count. Default: `cpuTimeOf`, the CPU time of the whole process. */
  readonly cpuTime?: (pid: number) => CpuTime;
  /** Listening ports at 127.0.0.1. */
  readonly ports: Readonly<Record<Backend, number>>;
  /** Output of the process, for error messages. */
  readonly output?: () => string;
  /** Runs the garbage collector; absent if the program has none. */
  readonly collectGarbage?: () => Promise<void>;
  /** Reasons why the subject does not relay to a backend, by backend. */
  readonly unsupported?: Readonly<Partial<Record<Backend, string>>>;
  /** Reads the traffic that the subject has counted; absent if the subject does not count traffic. */
  readonly readLedger?: () => Promise<Ledger<Backend>>;
};

/** `http`: small HTTP responses. `stream`: a stream of the requested size. `echo`: echo over TCP. `datagrams`: echo over UDP. */
export const BACKEND_NAMES = ['http', 'stream', 'echo', 'datagrams'] as const;
/** The receive buffer of all UDP listeners. Weir asks for this size. With the default size, other proxies lose datagrams. */
export const DATAGRAM_BUFFER_BYTES = 4_194_304;
export type BackendName = (typeof BACKEND_NAMES)[number];
export type BackendPorts = Readonly<Record<BackendName, number>>;
export type Ledger<Backend extends string> = Readonly<Record<Backend, TrafficTotals>>;

export type TrafficTotals = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
};

export function perBackend<Backend extends string, T>(
  names: readonly Backend[],
  value: (name: Backend) => T,
): Record<Backend, T> {
  return Object.fromEntries(names.map((name) => [name, value(name)])) as Record<Backend, T>;
}

/** Subjects that the option --subjects of `l4` and `fairness` accepts. */
export const SELECTABLE_SUBJECTS = ['weir', 'haproxy', 'nginx', 'envoy', 'pipe'] as const;
export type SelectableSubjectName = (typeof SELECTABLE_SUBJECTS)[number];
/** Subjects that can be started: the selectable subjects, and variants of Weir that only some scenarios start. */
export type StartableSubjectName = SelectableSubjectName | 'weir-limits' | 'weir-2-workers';
/**
 * Names of all subjects. `direct` is a connection to the backend without a proxy. `http-proxy` relays only HTTP. Only `cost` starts
 * `weir-unmetered`, which is Weir without metering and limits, and `weir-unmetered-2`, which is the same.
 */
export type SubjectName = StartableSubjectName | 'http-proxy' | 'direct' | 'weir-unmetered' | 'weir-unmetered-2';
