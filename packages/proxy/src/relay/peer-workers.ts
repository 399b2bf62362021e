// Forwards a datagram to the worker that has its flow, from thread to thread (ADR 8). The kernel gives datagrams of a flow to
// another worker only after a worker has started or ended. Forwarding costs more than relaying, and is bounded.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import { type Client, hashText, type ListenerKey } from '@weir/model/data-plane';
import { createFlowOwnersMemory, FlowOwners, hashOfFlow } from './udp-flow-owners.ts';

/**
 * The maximum number of datagrams in flight to one worker. Further datagrams are dropped, as by a full socket buffer.
 */
const MAX_DATAGRAMS_IN_FLIGHT = 1_024;
const IN_FLIGHT_COUNTERS = 256;
const LISTENER_HASH_SEED = 0x2545f491;

/** The names and shared memory by which a worker reaches its peers. */
export interface PeerWorkersSetup {
  /** The prefix of all channel names: the same for all workers of a proxy, and unique to the proxy. */
  readonly channelPrefix: string;
  readonly owners: SharedArrayBuffer;
  /** The number of datagrams in flight to each worker. */
  readonly datagramsInFlight: SharedArrayBuffer;
  readonly worker: number;
}

interface ForwardedDatagram extends Client {
  readonly key: ListenerKey;
  readonly bytes: Uint8Array;
}

/** The memory about flows that the workers of a proxy share. */
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
  readonly #listeners = new Map<ListenerKey, (bytes: Uint8Array, client: Client) => void>();

  constructor(setup: PeerWorkersSetup) {
    this.#setup = setup;
    this.#owners = new FlowOwners(setup.owners, setup.worker);
    this.#datagramsInFlight = new Int32Array(setup.datagramsInFlight);
    Atomics.store(this.#datagramsInFlight, setup.worker % IN_FLIGHT_COUNTERS, 0);
    this.#ownChannel = this.#openChannel(setup.worker);
    this.#ownChannel.onmessage = (event) => this.#receive((event as { readonly data: ForwardedDatagram }).data);
  }

  /** Joins for one listener. `onForwarded` receives the datagrams that peers forward to its flows. */
  join(key: ListenerKey, onForwarded: (bytes: Uint8Array, client: Client) => void): ListenerPeers {
    this.#listeners.set(key, onForwarded);
    const seed = hashText(key, LISTENER_HASH_SEED);
    return {
      forward: (bytes, client) => {
        const owner = this.#owners.ownerOf(hashOfFlow(seed, client));
        if (owner === 0) return false;
        this.#send(owner, { key, bytes, address: client.address, port: client.port });
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
    // Most of these channels lead to workers that have ended.
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

/** The peer workers from the view of one listener. */
export interface ListenerPeers {
  /** Returns whether another worker has the flow. Then the datagram is forwarded to it, or dropped if too many are in flight. */
  forward(bytes: Uint8Array, client: Client): boolean;
  claim(client: Client): void;
  release(client: Client): void;
  leave(): void;
}
