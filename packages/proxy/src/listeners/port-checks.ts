import type { ListenerKey, Protocol } from '@weir/model/data-plane';
import type { SocketAddress } from '../tcp/transport.ts';

export interface ProbeAddress extends SocketAddress {
  readonly protocol: Protocol;
}

export type PortProbe = (at: ProbeAddress) => Promise<string | undefined>;

/** Asks whether ports are free, never twice at once for the same one: the second would find the first there. */
export class PortProbes {
  readonly #probe: PortProbe;
  readonly #running = new Map<ListenerKey, Promise<string | undefined>>();

  constructor(probe: PortProbe) {
    this.#probe = probe;
  }

  /** Resolves to the errno code of what is in the way, or undefined. */
  probe(key: ListenerKey, at: ProbeAddress): Promise<string | undefined> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const asked = this.#probe(at).finally(() => this.#running.delete(key));
    this.#running.set(key, asked);
    return asked;
  }
}
