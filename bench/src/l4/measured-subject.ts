import { connectClient, eventually } from '@weir/testkit';
import { downloadBulk } from '../load/bulk-stream.ts';
import { datagramReportErrors, runDatagrams } from '../load/generators.ts';
import { cpuTimeOf } from '../measure/proc-stats.ts';
import {
  addTraffic,
  exactTraffic,
  ledgerDifferences,
  NO_TRAFFIC,
  type TrafficBounds,
} from '../measure/traffic-bounds.ts';
import { BACKEND_NAMES, type BackendName, type Ledger, perBackend, type Subject } from '../subjects/subject.ts';
import { readUntilStable } from '../subjects/weir-console.ts';
import type { L4Reading } from './l4-result.ts';
import { datagramTraffic, type Load } from './loads.ts';

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

/** Resolves when the port relays to its backend, and the answer was the backend's; what was moved is told as it is moved. */
type RelayCheck = (port: number, tell: (moved: TrafficBounds) => void) => Promise<void>;
const HTTP_REQUEST = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const ECHO_MESSAGE = 'an echo?';
const BULK_BYTES = 3_000_001;

export const RELAY_CHECKS: Readonly<Record<BackendName, RelayCheck>> = {
  answers: (port, tell) =>
    eventually(async () => {
      const answer = await exchange(port, HTTP_REQUEST);
      tell(exactTraffic({ receivedBytes: HTTP_REQUEST.length, sentBytes: answer.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes for whoever asks\n$/s.test(answer))
        throw new Error(`not nginx's answer: ${answer}`);
    }),
  bulk: (port, tell) =>
    eventually(async () => {
      const { requestBytes } = await downloadBulk(port, BULK_BYTES);
      tell(exactTraffic({ receivedBytes: requestBytes, sentBytes: BULK_BYTES, connections: 1 }));
    }),
  echo: (port, tell) =>
    eventually(async () => {
      const answer = await exchange(port, ECHO_MESSAGE, { halfClose: true });
      tell(exactTraffic({ receivedBytes: ECHO_MESSAGE.length, sentBytes: answer.length, connections: 1 }));
      if (answer !== ECHO_MESSAGE) throw new Error(`not an echo: ${answer}`);
    }),
  datagrams: (port, tell) =>
    eventually(async () => {
      const report = await runDatagrams({ port, seconds: 0, flows: 1 });
      tell(datagramTraffic(report, 1));
      const complaints = datagramReportErrors(report);
      if (complaints.length > 0) throw new Error(complaints.join(', '));
    }),
};

async function exchange(port: number, text: string, { halfClose = false } = {}): Promise<string> {
  await using client = await connectClient({ port });
  await client.send(text);
  if (halfClose) await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`a probe ended by ${JSON.stringify(ending)}`);
  if (!halfClose) await client.end();
  return client.buffered.toString('latin1');
}
