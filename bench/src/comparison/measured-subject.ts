import { type CpuTime, cpuTimeOf } from '../measure/proc-stats.ts';
import { addTraffic, ledgerDifferences, NO_TRAFFIC, type TrafficBounds } from '../measure/traffic-bounds.ts';
import type { Subject } from '../subjects/subject.ts';
import { readUntilStable } from '../subjects/weir-console.ts';
import type { Reading } from './comparison-result.ts';
import type { Load } from './load.ts';

/**
 * Sends requests until a response comes from the expected backend. Reports the traffic of every response, right or wrong. Throws if no
 * response is right.
 */
export type RelayCheck = (port: number, reportTraffic: (traffic: TrafficBounds) => void) => Promise<void>;
export type RelayChecks<Backend extends string> = Readonly<Record<Backend, RelayCheck>>;

/** A subject, and the expected traffic of its ledger. */
export class MeasuredSubject<Backend extends string> {
  readonly subject: Subject<Backend>;
  readonly #checks: RelayChecks<Backend>;
  readonly #expectedTraffic = new Map<Backend, TrafficBounds>();

  constructor(subject: Subject<Backend>, checks: RelayChecks<Backend>) {
    this.subject = subject;
    this.#checks = checks;
  }

  /** Waits until the subject relays to the backend, and verifies that the response comes from the backend. */
  async verifyRelay(backend: Backend): Promise<void> {
    const { name, ports, output } = this.subject;
    try {
      await this.#checks[backend](ports[backend], (traffic) => this.addExpectedTraffic(backend, traffic));
    } catch (error) {
      const last = output?.().trim().split('\n').slice(-3).join(' | ') || 'no output';
      throw new Error(`${name} does not relay to "${backend}": ${(error as Error).message} (${last})`, {
        cause: error,
      });
    }
  }

  /** Runs the load once and returns the reading. Throws if the load reports errors. */
  async runLoad(load: Load<Backend>, seconds: number): Promise<Reading> {
    const { name, ports } = this.subject;
    const { value: loaded, userMs, systemMs } = await this.withCpuTime(() => load.run(ports[load.backend], seconds));
    this.addExpectedTraffic(load.backend, loaded.traffic);
    if (loaded.errors.length > 0) throw new Error(`${load.title} through ${name}: ${loaded.errors.join(', ')}`);
    return { figure: load.figure(userMs + systemMs, loaded), userMs, systemMs };
  }

  /** Runs `work` and measures the CPU time that the subject uses until `work` ends. */
  async withCpuTime<T>(work: () => Promise<T>): Promise<{ value: T; userMs: number; systemMs: number }> {
    const before = this.#cpuTime();
    const value = await work();
    const after = this.#cpuTime();
    return { value, userMs: after.userMs - before.userMs, systemMs: after.systemMs - before.systemMs };
  }

  #cpuTime(): CpuTime {
    const { pid, cpuTime = cpuTimeOf } = this.subject;
    return cpuTime(pid);
  }

  addExpectedTraffic(backend: Backend, traffic: TrafficBounds): void {
    this.#expectedTraffic.set(backend, addTraffic(this.#expectedTraffic.get(backend) ?? NO_TRAFFIC, traffic));
  }

  /** Waits until the subject's ledger is stable. Throws if the ledger differs from the expected traffic. */
  async verifyLedger(): Promise<void> {
    const { name, readLedger } = this.subject;
    if (readLedger === undefined) return;
    const ledger = await readUntilStable(readLedger);
    for (const backend of Object.keys(ledger) as Backend[]) {
      const differences = ledgerDifferences(ledger[backend], this.#expectedTraffic.get(backend) ?? NO_TRAFFIC);
      if (differences.length > 0) {
        throw new Error(`the ledger of ${name} is wrong for "${backend}": ${differences.join('; ')}`);
      }
    }
  }
}
