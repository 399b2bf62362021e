import { cpuTimeOf } from '../measure/cpu-time.ts';
import { addTraffic, ledgerDifferences, NO_TRAFFIC, type TrafficBounds } from '../measure/moved.ts';
import type { L4Reading } from '../report/result.ts';
import { BACKEND_NAMES, type BackendName, type Ledger, perBackend, type Subject } from '../subjects/subject.ts';
import type { Load } from './load.ts';
import { RELAY_CHECKS } from './proofs.ts';
import { readUntilStable } from './settled.ts';

/** A subject in the running, and the account of what was moved through it. */
export class MeasuredSubject {
  readonly subject: Subject;
  #expectedTraffic: Record<BackendName, TrafficBounds> = perBackend(() => NO_TRAFFIC);

  constructor(subject: Subject) {
    this.subject = subject;
  }

  /** Waits until it relays to the backend, and sees that what comes back is the backend's answer. */
  async verifyRelay(backend: BackendName): Promise<void> {
    const { name, ports, output } = this.subject;
    try {
      await RELAY_CHECKS[backend](ports[backend], (moved) => this.addExpectedTraffic(backend, moved));
    } catch (error) {
      const last = output?.().trim().split('\n').slice(-3).join(' | ') || 'it printed nothing';
      throw new Error(`${name} does not relay to "${backend}": ${(error as Error).message} (${last})`, {
        cause: error,
      });
    }
  }

  /** One turn. Throws when it is not valid. */
  async runLoad(load: Load, seconds: number): Promise<L4Reading> {
    const { name, ports } = this.subject;
    const { value: loaded, userMs, systemMs } = await this.withCpuTime(() => load.run(ports[load.backend], seconds));
    this.addExpectedTraffic(load.backend, loaded.traffic);
    if (loaded.errors.length > 0) throw new Error(`${load.title} through ${name}: ${loaded.errors.join(', ')}`);
    return {
      figure: load.figure(userMs + systemMs, loaded),
      userMs,
      systemMs,
      count: loaded.count,
      ms: loaded.ms,
    };
  }

  /** Does the work, and says what CPU time the subject has used meanwhile. */
  async withCpuTime<T>(work: () => Promise<T>): Promise<{ value: T; userMs: number; systemMs: number }> {
    const before = cpuTimeOf(this.subject.pid);
    const value = await work();
    const after = cpuTimeOf(this.subject.pid);
    return { value, userMs: after.userMs - before.userMs, systemMs: after.systemMs - before.systemMs };
  }

  addExpectedTraffic(backend: BackendName, moved: TrafficBounds): void {
    this.#expectedTraffic[backend] = addTraffic(this.#expectedTraffic[backend], moved);
  }

  /** Compares the subject's own ledger, once it has settled, with what was moved. Throws when they differ. */
  async verifyLedger(): Promise<void> {
    const { name, ledger: read } = this.subject;
    if (read === undefined) return;
    const ledger: Ledger = await readUntilStable(read);
    for (const backend of BACKEND_NAMES) {
      const wrong = ledgerDifferences(ledger[backend], this.#expectedTraffic[backend]);
      if (wrong.length > 0) throw new Error(`the ledger of ${name} is wrong for "${backend}": ${wrong.join('; ')}`);
    }
  }
}
