// Follows the access log of one Service at all proxies that serve it, and merges their lines in the order of arrival.
import type { AdminAddress, Heartbeat } from '@weir/model';
import { type Clock, errorMessage, formatHostPort, wait } from '@weir/runtime';
import { type ProxyAdminAccess, readProxyStream } from './proxy-stream.ts';

export interface AccessLogFollowerOptions {
  /** `NAMESPACE/NAME` */
  readonly service: string;
  readonly access: ProxyAdminAccess;
  readonly clock: Clock;
  /** Returns the heartbeats of the proxies that serve the Service now. */
  proxies(): readonly Heartbeat[];
  /** Called with complete lines, each with its newline. */
  onLines(lines: Uint8Array): void;
  /** Called when the lines of a proxy are missing from now on, with the reason. */
  onProblem(node: string, problem: string): void;
}

/** Time between two looks at the list of proxies, and between two attempts to connect to one. */
const RECONCILE_INTERVAL_MS = 1_000;

export class AccessLogFollower {
  readonly #options: AccessLogFollowerOptions;
  readonly #closing = new AbortController();
  /** The proxies that are read, by node, admin address and incarnation. */
  readonly #readers = new Map<string, AbortController>();
  /** The last problem of each node, so that each problem is reported once. */
  readonly #problems = new Map<string, string>();

  constructor(options: AccessLogFollowerOptions) {
    this.#options = options;
    void this.#run();
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#reconcile();
      await wait(clock, RECONCILE_INTERVAL_MS, signal).catch(() => undefined);
    }
    for (const reader of this.#readers.values()) reader.abort();
  }

  #reconcile(): void {
    const wanted = new Map(this.#options.proxies().map((proxy) => [readerKey(proxy), proxy]));
    for (const [key, reader] of this.#readers) if (!wanted.has(key)) reader.abort();
    for (const [key, proxy] of wanted) if (!this.#readers.has(key)) this.#start(key, proxy);
    for (const node of this.#problems.keys())
      if (![...wanted.values()].some((proxy) => proxy.node === node)) this.#problems.delete(node);
  }

  #start(key: string, heartbeat: Heartbeat): void {
    const { node } = heartbeat;
    const admin = adminAddressOf(heartbeat);
    if (admin === undefined) {
      this.#report(node, 'its admin server does not listen, or its version has no access log');
      return;
    }
    const { service, access, onLines } = this.#options;
    const reader = new AbortController();
    this.#readers.set(key, reader);
    readProxyStream({
      address: admin,
      path: `/access-log?service=${encodeURIComponent(service)}`,
      access,
      signal: reader.signal,
      onLines: (lines) => {
        this.#problems.delete(node);
        onLines(lines);
      },
    })
      .catch((error) => {
        if (!reader.signal.aborted) this.#report(node, `${formatHostPort(admin)}: ${errorMessage(error)}`);
      })
      .finally(() => this.#readers.delete(key));
  }

  #report(node: string, problem: string): void {
    if (this.#closing.signal.aborted || this.#problems.get(node) === problem) return;
    this.#problems.set(node, problem);
    this.#options.onProblem(node, problem);
  }
}

/** Returns where to reach the admin server. A server that listens on all addresses is reached at the first one of the node. */
export function adminAddressOf({ admin, addresses: [first] }: Heartbeat): AdminAddress | undefined {
  return admin !== undefined && first !== undefined && ANY_ADDRESSES.includes(admin.host)
    ? { ...admin, host: first }
    : admin;
}

const ANY_ADDRESSES: readonly string[] = ['0.0.0.0', '::'];

function readerKey({ node, life, admin }: Heartbeat): string {
  return JSON.stringify([node, life, admin]);
}
