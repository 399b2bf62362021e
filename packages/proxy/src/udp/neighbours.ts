// Datagrams of flows that another worker has go there, from thread to thread. That is dearer than to relay one, but only
// those go that the kernel gives to another worker than at first; and bounded, because nothing here may pile up.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import { type Client, hashText, type ListenerKey } from '@weir/model/data-plane';
import { createOwnersMemory, FlowOwners, hashOfFlow } from './flow-owners.ts';

/** Under way to one worker; more are dropped, as a full socket would. */
const MOST_UNDER_WAY = 1_024;
const COUNTS = 256;
const LISTENER_SEED = 0x2545f491;

/** What a worker is told to find the others. */
export interface NeighbourSeat {
  /** One for all workers of a proxy, and for no other proxy. */
  readonly exchange: string;
  readonly owners: SharedArrayBuffer;
  /** How many datagrams are under way to each worker. */
  readonly underWay: SharedArrayBuffer;
  readonly worker: number;
}

interface Forwarded extends Client {
  readonly key: ListenerKey;
  readonly bytes: Uint8Array;
}

/** All that the workers of a proxy share about flows. */
export type NeighbourMemory = Omit<NeighbourSeat, 'worker'>;

export function createNeighbourMemory(): NeighbourMemory {
  const underWay = new SharedArrayBuffer(COUNTS * Int32Array.BYTES_PER_ELEMENT);
  return { exchange: randomUUID(), owners: createOwnersMemory(), underWay };
}

export class Neighbours {
  readonly #seat: NeighbourSeat;
  readonly #owners: FlowOwners;
  readonly #underWay: Int32Array;
  readonly #inbox: BroadcastChannel;
  readonly #outboxes = new Map<number, BroadcastChannel>();
  readonly #listeners = new Map<ListenerKey, (bytes: Uint8Array, client: Client) => void>();

  constructor(seat: NeighbourSeat) {
    this.#seat = seat;
    this.#owners = new FlowOwners(seat.owners, seat.worker);
    this.#underWay = new Int32Array(seat.underWay);
    Atomics.store(this.#underWay, seat.worker % COUNTS, 0);
    this.#inbox = this.#channelOf(seat.worker);
    this.#inbox.onmessage = (event) => this.#take((event as { readonly data: Forwarded }).data);
  }

  /** For one listener; `onForwarded` gets what other workers have got for its flows. */
  join(key: ListenerKey, onForwarded: (bytes: Uint8Array, client: Client) => void): ListenerNeighbours {
    this.#listeners.set(key, onForwarded);
    const seed = hashText(key, LISTENER_SEED);
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
    this.#inbox.close();
    this.#closeOutboxes();
  }

  #send(owner: number, datagram: Forwarded): void {
    const count = owner % COUNTS;
    if (Atomics.add(this.#underWay, count, 1) >= MOST_UNDER_WAY) Atomics.sub(this.#underWay, count, 1);
    else this.#outboxOf(owner).postMessage(datagram);
  }

  #take({ key, bytes, ...client }: Forwarded): void {
    Atomics.sub(this.#underWay, this.#seat.worker % COUNTS, 1);
    this.#listeners.get(key)?.(bytes, client);
  }

  #outboxOf(worker: number): BroadcastChannel {
    const known = this.#outboxes.get(worker);
    if (known !== undefined) return known;
    // Of those who live no longer, mostly.
    if (this.#outboxes.size >= COUNTS) this.#closeOutboxes();
    const outbox = this.#channelOf(worker);
    this.#outboxes.set(worker, outbox);
    return outbox;
  }

  #closeOutboxes(): void {
    for (const outbox of this.#outboxes.values()) outbox.close();
    this.#outboxes.clear();
  }

  #channelOf(worker: number): BroadcastChannel {
    const channel = new BroadcastChannel(`weir-flows-${this.#seat.exchange}-${worker}`);
    channel.unref();
    return channel;
  }
}

/** The other workers, as one listener sees them. */
export interface ListenerNeighbours {
  /** True: another worker has this flow, and the datagram is on its way there. */
  forward(bytes: Uint8Array, client: Client): boolean;
  claim(client: Client): void;
  release(client: Client): void;
  leave(): void;
}
