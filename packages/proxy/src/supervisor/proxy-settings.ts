import type { Clock, Health, HostPort, Logger, Secret } from '@weir/runtime';
import type { Store } from '@weir/store';

export interface ProxyOptions {
  readonly store: Store;
  /** Fleet and node identify the proxy on its host: a second proxy with the same names is taken for an upgrade. */
  readonly fleet: string;
  readonly node: string;
  /** Addresses to report as the node's own; by default the addresses that the table gives to the node. */
  readonly addresses?: readonly string[] | undefined;
  /** The number of worker threads. */
  readonly workers: number;
  /** The maximum heap of one worker in MiB, at which the worker is replaced; by default derived from the memory of this machine. */
  readonly workerHeapMb?: number | undefined;
  /**
   * CIDRs of the load balancers in front of the proxies: a connection from there must begin with a PROXY header, which
   * names the client. By default no PROXY header is accepted.
   */
  readonly trustProxyProtocol?: readonly string[] | undefined;
  /** Opens the private keys that the controller sealed with the same secret. Without it, clients of terminated TLS are refused. */
  readonly fleetSecret?: Secret | undefined;
  /** Holds the last table, suspensions and usage journals, in a directory named after the node. Without it nothing survives a restart. */
  readonly stateDirectory?: string | undefined;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  /** How long open connections may continue after `close`; 30 s by default. */
  readonly drainMs?: number | undefined;
  readonly admin?: HostPort | 'off' | undefined;
  /** Directory with the certificate of the admin server, tls.crt and tls.key; without it the admin server does not use TLS. */
  readonly adminTls?: string | undefined;
  /** Clients of the admin server must send this token for everything except probes; by default no token is required. */
  readonly adminToken?: Secret | undefined;
  /** Gets this proxy's checks, for probes on other sockets than the admin server. */
  readonly health?: Health | undefined;
  /** Called when a drain is requested on the local socket; by default the proxy closes. */
  readonly onDrain?: (() => void) | undefined;
  readonly version?: string | undefined;
  /** Kernel settings of this host that will cost clients something; reported in heartbeats. */
  readonly hostWarnings?: readonly string[] | undefined;
  /** The module that worker threads run. Tests replace it. */
  readonly workerEntry?: URL | undefined;
}

export interface ProxySettings extends ProxyOptions {
  readonly clock: Clock;
  readonly health: Health;
}
