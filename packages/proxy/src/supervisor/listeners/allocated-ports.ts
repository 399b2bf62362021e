// Ports that are ours to publish though nothing of ours is there, such as those of a Service without endpoints.
import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { ListenerStates } from './listener-states.ts';
import type { PortProbes, ProbeAddress } from './port-probe.ts';

const CHECK_INTERVAL_MS = 10_000;
/** A check costs the kernel a bind: so many held ports are looked at in one second. */
const MAX_CHECKS_PER_ROUND = 100;

export interface AllocatedPortsOptions {
  readonly matcher: Matcher;
  readonly states: ListenerStates;
  readonly probes: PortProbes;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Some worker may not have closed it yet: we would find ourselves. */
  readonly isStillClosing: (key: ListenerKey) => boolean;
  /** Somebody else has it; `code` as in errno. */
  readonly onTaken: (key: ListenerKey, at: ProbeAddress, code: string) => void;
}

export class AllocatedPorts {
  readonly #options: AllocatedPortsOptions;

  constructor(options: AllocatedPortsOptions) {
    this.#options = options;
  }

  /** It is free, or was ours until now. */
  markAllocated(key: ListenerKey): void {
    const { states, clock } = this.#options;
    states.set(key, { kind: 'allocated', checkAt: clock.monotonic() + CHECK_INTERVAL_MS });
  }

  /** Once a second: a foreign process may take a held port, and then it is not ours to publish. */
  check(): void {
    const { matcher, states, clock, isStillClosing } = this.#options;
    const now = clock.monotonic();
    let left = MAX_CHECKS_PER_ROUND;
    for (const [key, state] of states.all) {
      if (left === 0) return;
      if (state.kind !== 'allocated' || state.checkAt > now) continue;
      const at = matcher.listeners.get(key)?.listener;
      if (at === undefined || isStillClosing(key)) continue;
      left -= 1;
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
