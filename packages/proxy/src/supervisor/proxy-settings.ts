import type { Clock, Health, HostPort, Logger, Secret } from '@weir/runtime';
import type { Store } from '@weir/store';

export interface ProxyOptions {
  readonly store: Store;
  /** Two serving proxies of one fleet and node on one host are told apart from an upgrade by these names. */
  readonly fleet: string;
  readonly node: string;
  /** Reported as the node's own; absent: those that the table gives it. */
  readonly addresses?: readonly string[] | undefined;
  /** Threads that relay. */
  readonly workers: number;
  /** How large the heap of each may grow, in MiB, before it is ended and replaced; absent: by the memory of this machine. */
  readonly workerHeapMb?: number | undefined;
  /**
   * CIDRs of the load balancers in front: whatever connects from there must begin with a PROXY header, and is believed who its
   * client is. Absent: nobody is.
   */
  readonly trustProxyProtocol?: readonly string[] | undefined;
  /** Opens the private keys that the controller sealed by the same. Absent: clients are refused where TLS ends here. */
  readonly fleetSecret?: Secret | undefined;
  /** Last good table, cut-offs and journals, below a folder of the node's name. Absent: nothing survives. */
  readonly stateDirectory?: string | undefined;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  /** How long open connections may go on when it closes; default 30 s. */
  readonly drainMs?: number | undefined;
  readonly admin?: HostPort | 'off' | undefined;
  /** Directory of the certificate of admin, tls.crt and tls.key; absent: no TLS. */
  readonly adminTls?: string | undefined;
  /** Who asks admin for more than probes must send it; absent: nobody. */
  readonly adminToken?: Secret | undefined;
  /** Is told what this proxy knows of itself, for probes elsewhere than at admin. */
  readonly health?: Health | undefined;
  /** Somebody asked for a drain on the local socket; absent: the proxy closes. */
  readonly onDrain?: (() => void) | undefined;
  readonly version?: string | undefined;
  /** What of its host's kernel settings will cost clients something; its heartbeats say it. Absent: nobody has looked. */
  readonly hostWarnings?: readonly string[] | undefined;
  /** Another entry for the worker threads: tests make workers fail by it. */
  readonly workerEntry?: URL | undefined;
}

export interface ProxySettings extends ProxyOptions {
  readonly clock: Clock;
}
