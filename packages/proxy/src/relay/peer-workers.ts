// Datagrams of flows that another worker has go there, from thread to thread. That is dearer than to relay one, but only
// those go that the kernel gives to another worker than at first; and bounded, because nothing here may pile up.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import { type Client, hashText, type ListenerKey } from '@weir/model/data-plane';
import { createFlowOwnersMemory, FlowOwners, hashOfFlow } from './udp-flow-owners.ts';

/** Under way to one worker; more are dropped, as a full socket would. */
const MAX_DATAGRAMS_IN_FLIGHT = 1_024;
const IN_FLIGHT_COUNTERS = 256;
const LISTENER_HASH_SEED = 0x2545f491;

/** What a worker is told to find the others. */
export interface PeerWorkersSetup {
  /** One for all workers of a proxy, and for no other proxy. */
  readonly channelPrefix: string;
  readonly owners: SharedArrayBuffer;
  /** How many datagrams are under way to each worker. */
  readonly datagramsInFlight: SharedArrayBuffer;
  readonly worker: number;
}

interface ForwardedDatagram extends Client {
  readonly key: ListenerKey;
  readonly bytes: Uint8Array;
}

/** All that the workers of a proxy share about flows. */
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

  constructor(seat: PeerWorkersSetup) {
    this.#setup = seat;
    this.#owners = new FlowOwners(seat.owners, seat.worker);
    this.#datagramsInFlight = new Int32Array(seat.datagramsInFlight);
    Atomics.store(this.#datagramsInFlight, seat.worker % IN_FLIGHT_COUNTERS, 0);
    this.#ownChannel = this.#openChannel(seat.worker);
    this.#ownChannel.onmessage = (event) => this.#take((event as { readonly data: ForwardedDatagram }).data);
  }

  /** For one listener; `onForwarded` gets what other workers have got for its flows. */
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
    const count = owner % IN_FLIGHT_COUNTERS;
    if (Atomics.add(this.#datagramsInFlight, count, 1) >= MAX_DATAGRAMS_IN_FLIGHT)
      Atomics.sub(this.#datagramsInFlight, count, 1);
    else this.#channelTo(owner).postMessage(datagram);
  }

  #take({ key, bytes, ...client }: ForwardedDatagram): void {
    Atomics.sub(this.#datagramsInFlight, this.#setup.worker % IN_FLIGHT_COUNTERS, 1);
    this.#listeners.get(key)?.(bytes, client);
  }

  #channelTo(worker: number): BroadcastChannel {
    const known = this.#channels.get(worker);
    if (known !== undefined) return known;
    // Of those who live no longer, mostly.
    if (this.#channels.size >= IN_FLIGHT_COUNTERS) this.#closeChannels();
    const outbox = this.#openChannel(worker);
    this.#channels.set(worker, outbox);
    return outbox;
  }

  #closeChannels(): void {
    for (const outbox of this.#channels.values()) outbox.close();
    this.#channels.clear();
  }

  #openChannel(worker: number): BroadcastChannel {
    const channel = new BroadcastChannel(`weir-flows-${this.#setup.channelPrefix}-${worker}`);
    channel.unref();
    return channel;
  }
}

/** The other workers, as one listener sees them. */
export interface ListenerPeers {
  /** True: another worker has this flow, and the datagram is on its way there. */
  forward(bytes: Uint8Array, client: Client): boolean;
  claim(client: Client): void;
  release(client: Client): void;
  leave(): void;
}
