import { cpuTimeOf } from '../measure/cpu-time.ts';
import { differences, type Moved, nothing, plus } from '../measure/moved.ts';
import type { Reading } from '../report/result.ts';
import { type BackendName, backendNames, type Ledger, perBackend, type Subject } from '../subjects/subject.ts';
import type { Load } from './load.ts';
import { proofs } from './proofs.ts';
import { settled } from './settled.ts';

/** A subject in the running, and the account of what was moved through it. */
export class Contender {
  readonly subject: Subject;
  #moved: Record<BackendName, Moved> = perBackend(() => nothing);

  constructor(subject: Subject) {
    this.subject = subject;
  }

  /** Waits until it relays to the backend, and sees that what comes back is the backend's answer. */
  async prove(backend: BackendName): Promise<void> {
    const { name, ports, output } = this.subject;
    try {
      await proofs[backend](ports[backend], (moved) => this.add(backend, moved));
    } catch (error) {
      const last = output?.().trim().split('\n').slice(-3).join(' | ') || 'it printed nothing';
      throw new Error(`${name} does not relay to "${backend}": ${(error as Error).message} (${last})`, {
        cause: error,
      });
    }
  }

  /** One turn. Throws when it is not valid. */
  async run(load: Load, seconds: number): Promise<Reading> {
    const { name, ports } = this.subject;
    const { value: loaded, userMs, systemMs } = await this.charged(() => load.run(ports[load.backend], seconds));
    this.add(load.backend, loaded.moved);
    if (loaded.complaints.length > 0) throw new Error(`${load.title} through ${name}: ${loaded.complaints.join(', ')}`);
    return {
      figure: load.figure(userMs + systemMs, loaded),
      userMs,
      systemMs,
      count: loaded.count,
      ms: loaded.ms,
    };
  }

  /** Does the work, and says what CPU time the subject has used meanwhile. */
  async charged<T>(work: () => Promise<T>): Promise<{ value: T; userMs: number; systemMs: number }> {
    const before = cpuTimeOf(this.subject.pid);
    const value = await work();
    const after = cpuTimeOf(this.subject.pid);
    return { value, userMs: after.userMs - before.userMs, systemMs: after.systemMs - before.systemMs };
  }

  add(backend: BackendName, moved: Moved): void {
    this.#moved[backend] = plus(this.#moved[backend], moved);
  }

  /** Compares the subject's own ledger, once it has settled, with what was moved. Throws when they differ. */
  async audit(): Promise<void> {
    const { name, ledger: read } = this.subject;
    if (read === undefined) return;
    const ledger: Ledger = await settled(read);
    for (const backend of backendNames) {
      const wrong = differences(ledger[backend], this.#moved[backend]);
      if (wrong.length > 0) throw new Error(`the ledger of ${name} is wrong for "${backend}": ${wrong.join('; ')}`);
    }
  }
}
