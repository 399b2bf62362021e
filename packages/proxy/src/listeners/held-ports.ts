// Ports that are ours to publish though nothing of ours is there, such as those of a Service without endpoints.
import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { ListenerStates } from './listener-states.ts';
import type { PortChecks, ProbeAt } from './port-checks.ts';

const CHECK_EACH_MS = 10_000;
/** A check costs the kernel a bind: so many held ports are looked at in one second. */
const CHECKS_EACH_TIME = 100;

export interface HeldPortsOptions {
  readonly matcher: Matcher;
  readonly states: ListenerStates;
  readonly checks: PortChecks;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Some worker may not have closed it yet: we would find ourselves. */
  readonly isStillClosing: (key: ListenerKey) => boolean;
  /** Somebody else has it; `code` as in errno. */
  readonly onTaken: (key: ListenerKey, at: ProbeAt, code: string) => void;
}

export class HeldPorts {
  readonly #options: HeldPortsOptions;

  constructor(options: HeldPortsOptions) {
    this.#options = options;
  }

  /** It is free, or was ours until now. */
  hold(key: ListenerKey): void {
    const { states, clock } = this.#options;
    states.set(key, { kind: 'held', checkAt: clock.monotonic() + CHECK_EACH_MS });
  }

  /** Once a second: a foreign process may take a held port, and then it is not ours to publish. */
  check(): void {
    const { matcher, states, clock, isStillClosing } = this.#options;
    const now = clock.monotonic();
    let left = CHECKS_EACH_TIME;
    for (const [key, state] of states.all) {
      if (left === 0) return;
      if (state.kind !== 'held' || state.checkAt > now) continue;
      const at = matcher.listeners.get(key)?.at;
      if (at === undefined || isStillClosing(key)) continue;
      left -= 1;
      void this.#checkOne(key, at);
    }
  }

  async #checkOne(key: ListenerKey, at: ProbeAt): Promise<void> {
    const { states, checks, onTaken } = this.#options;
    this.hold(key);
    const checked = states.get(key);
    const code = await checks.ask(key, at);
    if (code !== undefined && states.get(key) === checked) onTaken(key, at, code);
  }
}
