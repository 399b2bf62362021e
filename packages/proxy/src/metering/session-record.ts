// Counts the bytes of one session, in addition to the counters of its Service. A session has a record only if the session is
// logged, or if its client is counted among the top clients.
import type { Client, ServiceEntry } from '@weir/model/data-plane';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { ServiceSessions } from '../relay/service-sessions.ts';
import type { RelayContext } from '../relay/session.ts';
import { clientNameFor, type TopClientsCounter } from './top-clients-counter.ts';

/** An open session adds its bytes to the counts of its client whenever it has relayed this many. */
const MAX_UNCOUNTED_BYTES = 1_048_576;

export type RecordContext = Pick<RelayContext, 'accessLog' | 'topClients'>;

export class SessionRecord {
  receivedBytes = 0;
  sentBytes = 0;
  /** In milliseconds of `Turns.nowMs`. */
  readonly startedAt: number;
  /** A copy, because the kernel gives no address after the end of the connection. */
  readonly client: Client;
  readonly isLogged: boolean;
  readonly #topClients: TopClientsCounter | undefined;
  readonly #entry: ServiceEntry;
  readonly #name: string;
  #uncountedBytes = 0;

  constructor({ address, port }: Client, { entry, startedAt, isLogged, topClients }: SessionRecordOptions) {
    this.client = { address, port };
    this.startedAt = startedAt;
    this.isLogged = isLogged;
    this.#entry = entry;
    this.#topClients = topClients;
    this.#name = topClients === undefined ? '' : clientNameFor(address);
    topClients?.add('connections', entry, { client: this.#name, amount: 1 });
  }

  addReceived(bytes: number): void {
    this.receivedBytes += bytes;
    this.#countBytes(bytes);
  }

  addSent(bytes: number): void {
    this.sentBytes += bytes;
    this.#countBytes(bytes);
  }

  /** To be called when all bytes of the session are added. */
  end(): void {
    if (this.#uncountedBytes === 0) return;
    this.#topClients?.add('bytes', this.#entry, { client: this.#name, amount: this.#uncountedBytes });
    this.#uncountedBytes = 0;
  }

  #countBytes(bytes: number): void {
    this.#uncountedBytes += bytes;
    if (this.#uncountedBytes >= MAX_UNCOUNTED_BYTES) this.end();
  }
}

interface SessionRecordOptions {
  readonly entry: ServiceEntry;
  readonly startedAt: number;
  readonly isLogged: boolean;
  readonly topClients: TopClientsCounter | undefined;
}

/** Returns the record of a new session of the Service, or undefined if the session needs none. */
export function startRecord(
  { accessLog, topClients }: RecordContext,
  service: ServiceSessions,
  { client, acceptedAt }: Pick<DownstreamInfo, 'client' | 'acceptedAt'>,
): SessionRecord | undefined {
  const isLogged = accessLog.samples(service);
  if (!isLogged && topClients === undefined) return undefined;
  const startedAt = acceptedAt ?? accessLog.now();
  return new SessionRecord(client, { entry: service.entry, startedAt, isLogged, topClients });
}

/**
 * Returns the record of an HTTP session, which is not logged itself, because its requests are logged. If `countsBytes`
 * is false, only counts the connection and returns undefined.
 */
export function startClientRecord(
  { accessLog, topClients }: RecordContext,
  { service: { entry } }: { readonly service: ServiceSessions },
  { info: { client }, countsBytes }: { readonly info: Pick<DownstreamInfo, 'client'>; readonly countsBytes: boolean },
): SessionRecord | undefined {
  if (topClients === undefined) return undefined;
  if (!countsBytes) {
    topClients.add('connections', entry, { client: clientNameFor(client.address), amount: 1 });
    return undefined;
  }
  return new SessionRecord(client, { entry, startedAt: accessLog.now(), isLogged: false, topClients });
}
