// Ports that a Service owns although no worker listens on them, for example because the Service has no endpoint. As
// long as no other process listens on such a port, its address is published.
import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { ListenerStates } from './listener-states.ts';
import type { PortProbes, ProbeAddress } from './port-probe.ts';

const CHECK_INTERVAL_MS = 10_000;
/**
 * The maximum number of ports that are checked per second. The number is limited because each check binds a port for a
 * moment.
 */
const MAX_CHECKS_PER_ROUND = 100;

export interface AllocatedPortsOptions {
  readonly matcher: Matcher;
  readonly states: ListenerStates;
  readonly probes: PortProbes;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Reports whether a worker may still have the port open. If so, a probe would find the socket of that worker. */
  readonly isStillClosing: (key: ListenerKey) => boolean;
  /** Called when another process listens on the port; `code` is an errno name. */
  readonly onTaken: (key: ListenerKey, at: ProbeAddress, code: string) => void;
}

export class AllocatedPorts {
  readonly #options: AllocatedPortsOptions;

  constructor(options: AllocatedPortsOptions) {
    this.#options = options;
  }

  /**
   * Marks the port as allocated. To be called when the port is free, or when this proxy has just stopped listening on
   * it.
   */
  markAllocated(key: ListenerKey): void {
    const { states, clock } = this.#options;
    states.set(key, { kind: 'allocated', checkAt: clock.monotonic() + CHECK_INTERVAL_MS });
  }

  /** Probes the ports that are due. To be called once a second. */
  check(): void {
    const { matcher, states, clock, isStillClosing } = this.#options;
    const now = clock.monotonic();
    let remaining = MAX_CHECKS_PER_ROUND;
    for (const [key, state] of states.all) {
      if (remaining === 0) return;
      if (state.kind !== 'allocated' || state.checkAt > now) continue;
      const at = matcher.listeners.get(key)?.listener;
      if (at === undefined || isStillClosing(key)) continue;
      remaining -= 1;
      void this.#checkOne(key, at);
    }
  }

  async #checkOne(key: ListenerKey, at: ProbeAddress): Promise<void> {
    const { states, probes, onTaken } = this.#options;
    this.markAllocated(key);
    const checked = states.get(key);
    const code = await probes.probe(key, at);
    if (code !== undefined && states.get(key) === checked) onTaken(key, at, code);
  }
}
