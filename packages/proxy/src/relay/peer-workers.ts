// Forwards a datagram from one worker thread to the worker that has the datagram's flow (ADR 8). Only after a worker
// has started or ended does the kernel deliver datagrams of a flow to a worker that does not have the flow. Forwarding
// costs more than relaying, so the number of forwarded datagrams in flight is limited.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import { hashText, type ListenerKey } from '@weir/model/data-plane';
import { createFlowOwnersMemory, FlowOwners, hashOfFlow } from './udp-flow-owners.ts';
import type { UdpClient } from './udp-flow-table.ts';

/**
 * The maximum number of datagrams in flight to one worker. Further datagrams are dropped, as the kernel drops datagrams
 * when a socket buffer is full.
 */
const MAX_DATAGRAMS_IN_FLIGHT = 1_024;
const IN_FLIGHT_COUNTERS = 256;
const LISTENER_HASH_SEED = 0x2545f491;

/** What a worker needs to reach its peer workers: the channel names and the shared memory. */
export interface PeerWorkersSetup {
  /** The prefix of all channel names. All workers of a proxy use the same prefix, and no other proxy uses it. */
  readonly channelPrefix: string;
  readonly owners: SharedArrayBuffer;
  /** The number of datagrams in flight to each worker, indexed by the worker's id modulo `IN_FLIGHT_COUNTERS`. */
  readonly datagramsInFlight: SharedArrayBuffer;
  readonly worker: number;
}

interface ForwardedDatagram extends UdpClient {
  readonly key: ListenerKey;
  readonly bytes: Uint8Array;
}

/** The part of the setup that all workers of a proxy share. */
export type PeerWorkersMemory = Omit<PeerWorkersSetup, 'worker'>;

export function createPeerWorkersMemory(): PeerWorkersMemory {
  const datagramsInFlight = new SharedArrayBuffer(IN_FLIGHT_COUNTERS * Int32Array.BYTES_PER_ELEMENT);
  return { channelPrefix: randomUUID(), owners: createFlowOwnersMemory(), datagramsInFlight };
}

export class PeerWorkers {
  readonly #setup: PeerWorkersSetup;
  readonly #owners: FlowOwners;
  readonly #datagramsInFlight: Int32Array;
  readonly #ownChannel: BroadcastChannel;
  readonly #channels = new Map<number, BroadcastChannel>();
  readonly #listeners = new Map<ListenerKey, (bytes: Uint8Array, client: UdpClient) => void>();

  constructor(setup: PeerWorkersSetup) {
    this.#setup = setup;
    this.#owners = new FlowOwners(setup.owners, setup.worker);
    this.#datagramsInFlight = new Int32Array(setup.datagramsInFlight);
    Atomics.store(this.#datagramsInFlight, setup.worker % IN_FLIGHT_COUNTERS, 0);
    this.#ownChannel = this.#openChannel(setup.worker);
    this.#ownChannel.onmessage = (event) => this.#receive((event as { readonly data: ForwardedDatagram }).data);
  }

  /** Registers a listener. `onForwarded` receives the datagrams that peer workers forward to the listener's flows. */
  join(key: ListenerKey, onForwarded: (bytes: Uint8Array, client: UdpClient) => void): ListenerPeers {
    this.#listeners.set(key, onForwarded);
    const seed = hashText(key, LISTENER_HASH_SEED);
    return {
      forward: (bytes, client) => {
        const owner = this.#owners.ownerOf(hashOfFlow(seed, client));
        if (owner === 0) return false;
        // Copied, because the bytes are valid only in this handler, and because `postMessage` copies the whole memory
        // that the bytes are a part of.
        const { address, host, port } = client;
        this.#send(owner, { key, bytes: new Uint8Array(bytes), address, host, port });
        return true;
      },
      claim: (client) => this.#owners.claim(hashOfFlow(seed, client)),
      release: (client) => this.#owners.release(hashOfFlow(seed, client)),
      leave: () => {
        if (this.#listeners.get(key) === onForwarded) this.#listeners.delete(key);
      },
    };
  }

  close(): void {
    this.#ownChannel.close();
    this.#closeChannels();
  }

  #send(owner: number, datagram: ForwardedDatagram): void {
    const counter = owner % IN_FLIGHT_COUNTERS;
    if (Atomics.add(this.#datagramsInFlight, counter, 1) >= MAX_DATAGRAMS_IN_FLIGHT)
      Atomics.sub(this.#datagramsInFlight, counter, 1);
    else this.#channelTo(owner).postMessage(datagram);
  }

  #receive({ key, bytes, ...client }: ForwardedDatagram): void {
    Atomics.sub(this.#datagramsInFlight, this.#setup.worker % IN_FLIGHT_COUNTERS, 1);
    this.#listeners.get(key)?.(bytes, client);
  }

  #channelTo(worker: number): BroadcastChannel {
    const known = this.#channels.get(worker);
    if (known !== undefined) return known;
    // Closes all channels, because if there are this many, most of them lead to workers that have ended. Channels are
    // opened again when needed.
    if (this.#channels.size >= IN_FLIGHT_COUNTERS) this.#closeChannels();
    const channel = this.#openChannel(worker);
    this.#channels.set(worker, channel);
    return channel;
  }

  #closeChannels(): void {
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
  }

  #openChannel(worker: number): BroadcastChannel {
    const channel = new BroadcastChannel(`weir-flows-${this.#setup.channelPrefix}-${worker}`);
    channel.unref();
    return channel;
  }
}

/** The access of one listener to the peer workers. */
export interface ListenerPeers {
  /**
   * Returns false if no other worker has the flow of `client`. Otherwise returns true and forwards the datagram to that
   * worker, or drops the datagram if too many datagrams are in flight to that worker.
   */
  forward(bytes: Uint8Array, client: UdpClient): boolean;
  claim(client: UdpClient): void;
  release(client: UdpClient): void;
  leave(): void;
}
