import type { Clock, Health, HostPort, LineOutput, Logger, Secret } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { TlsKind, TransportKind } from '../transport/choose-transport.ts';

export interface ProxyOptions {
  readonly store: Store;
  /**
   * The names of the fleet and the node identify the proxy on its host. A second proxy with the same names is treated
   * as an upgrade of the first.
   */
  readonly fleet: string;
  readonly node: string;
  /**
   * Addresses to report as the addresses of the node. By default, the proxy reports the addresses that the routing
   * table lists for the node.
   */
  readonly addresses?: readonly string[] | undefined;
  /** The number of worker threads. */
  readonly workers: number;
  /**
   * The maximum heap of one worker in MiB. A worker that exceeds the maximum is replaced. The default is derived from
   * the memory that this process may use.
   */
  readonly workerHeapMb?: number | undefined;
  /**
   * CIDRs of the load balancers in front of the proxies. A connection from these networks must begin with a PROXY
   * header, which contains the client's address. By default no PROXY header is accepted.
   */
  readonly trustProxyProtocol?: readonly string[] | undefined;
  /**
   * CIDRs of the HTTP proxies in front of the proxies. X-Forwarded-For, -Proto, -Host and -Port, and Forwarded (RFC
   * 7239) are trusted only on connections from these networks. By default they are trusted on no connection.
   */
  readonly trustForwarded?: readonly string[] | undefined;
  /** Whether endpoints get Forwarded (RFC 7239) in addition to X-Forwarded-For. By default they do not. */
  readonly writeForwarded?: boolean | undefined;
  /** Whether to count the clients with the most bytes and connections of each tenant. By default clients are not counted. */
  readonly topClients?: boolean | undefined;
  /**
   * Decrypts the private keys that the controller encrypted with the same secret. Without the secret, clients of ports
   * that terminate TLS are refused.
   */
  readonly fleetSecret?: Secret | undefined;
  /**
   * The directory for the last table, the suspensions and the usage journals, in a subdirectory named after the node.
   * Without a state directory, no state survives a restart.
   */
  readonly stateDirectory?: string | undefined;
  /** How the workers use sockets; `DEFAULT_TRANSPORT` by default. */
  readonly transport?: TransportKind | undefined;
  /** How the workers terminate TLS; `DEFAULT_TLS` by default. Ignored with the transport `node`. */
  readonly tls?: TlsKind | undefined;
  readonly log: Logger;
  /** Takes the lines of access logs; by default the standard output. */
  readonly accessLogOutput?: LineOutput | undefined;
  readonly clock?: Clock | undefined;
  /** How long open connections may continue after `close`; 30 s by default. */
  readonly drainMs?: number | undefined;
  readonly admin?: HostPort | 'off' | undefined;
  /**
   * The directory that contains `tls.crt` and `tls.key` of the admin server. Without it, the admin server does not use
   * TLS.
   */
  readonly adminTls?: string | undefined;
  /**
   * The token that clients of the admin server must send for every request except probes; by default no token is
   * required.
   */
  readonly adminToken?: Secret | undefined;
  /**
   * The proxy adds its health checks to this object, so that probes on sockets other than the admin server can use
   * them.
   */
  readonly health?: Health | undefined;
  /** Called when a drain is requested on the local admin socket; by default the proxy closes. */
  readonly onDrain?: (() => void) | undefined;
  readonly version?: string | undefined;
  /** Warnings about kernel settings of this host that harm clients. The proxy reports them in heartbeats. */
  readonly hostWarnings?: readonly string[] | undefined;
  /** The module that worker threads run. Tests replace it. */
  readonly workerEntry?: URL | undefined;
}

export interface ProxySettings extends ProxyOptions {
  readonly transport: TransportKind;
  readonly tls: TlsKind;
  readonly version: string;
  readonly clock: Clock;
  readonly health: Health;
}
