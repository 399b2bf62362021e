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

/** A subject, and the expected traffic of its ledger. */
export class MeasuredSubject {
  readonly subject: Subject;
  #expectedTraffic: Record<BackendName, TrafficBounds> = perBackend(() => NO_TRAFFIC);

  constructor(subject: Subject) {
    this.subject = subject;
  }

  /** Waits until the subject relays to the backend, and verifies that the response comes from the backend. */
  async verifyRelay(backend: BackendName): Promise<void> {
    const { name, ports, output } = this.subject;
    try {
      await RELAY_CHECKS[backend](ports[backend], (traffic) => this.addExpectedTraffic(backend, traffic));
    } catch (error) {
      const last = output?.().trim().split('\n').slice(-3).join(' | ') || 'no output';
      throw new Error(`${name} does not relay to "${backend}": ${(error as Error).message} (${last})`, {
        cause: error,
      });
    }
  }

  /** Runs the load once and returns the reading. Throws if the load reports errors. */
  async runLoad(load: Load, seconds: number): Promise<L4Reading> {
    const { name, ports } = this.subject;
    const { value: loaded, userMs, systemMs } = await this.withCpuTime(() => load.run(ports[load.backend], seconds));
    this.addExpectedTraffic(load.backend, loaded.traffic);
    if (loaded.errors.length > 0) throw new Error(`${load.title} through ${name}: ${loaded.errors.join(', ')}`);
    return { figure: load.figure(userMs + systemMs, loaded), userMs, systemMs };
  }

  /** Runs `work` and measures the CPU time that the subject uses until `work` ends. */
  async withCpuTime<T>(work: () => Promise<T>): Promise<{ value: T; userMs: number; systemMs: number }> {
    const before = cpuTimeOf(this.subject.pid);
    const value = await work();
    const after = cpuTimeOf(this.subject.pid);
    return { value, userMs: after.userMs - before.userMs, systemMs: after.systemMs - before.systemMs };
  }

  addExpectedTraffic(backend: BackendName, traffic: TrafficBounds): void {
    this.#expectedTraffic[backend] = addTraffic(this.#expectedTraffic[backend], traffic);
  }

  /** Waits until the subject's ledger is stable. Throws if the ledger differs from the expected traffic. */
  async verifyLedger(): Promise<void> {
    const { name, readLedger } = this.subject;
    if (readLedger === undefined) return;
    const ledger: Ledger = await readUntilStable(readLedger);
    for (const backend of BACKEND_NAMES) {
      const differences = ledgerDifferences(ledger[backend], this.#expectedTraffic[backend]);
      if (differences.length > 0) {
        throw new Error(`the ledger of ${name} is wrong for "${backend}": ${differences.join('; ')}`);
      }
    }
  }
}

/** Sends requests until a response comes from the expected backend. Reports the traffic of every response, right or wrong. */
type RelayCheck = (port: number, reportTraffic: (traffic: TrafficBounds) => void) => Promise<void>;
const HTTP_REQUEST = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const ECHO_MESSAGE = 'an echo?';
const BULK_BYTES = 3_000_001;

export const RELAY_CHECKS: Readonly<Record<BackendName, RelayCheck>> = {
  http: (port, reportTraffic) =>
    eventually(async () => {
      const response = await exchange(port, HTTP_REQUEST);
      reportTraffic(exactTraffic({ receivedBytes: HTTP_REQUEST.length, sentBytes: response.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes of response body\n$/s.test(response))
        throw new Error(`not the response of nginx: ${response}`);
    }),
  stream: (port, reportTraffic) =>
    eventually(async () => {
      const { requestBytes } = await downloadBulk(port, BULK_BYTES);
      reportTraffic(exactTraffic({ receivedBytes: requestBytes, sentBytes: BULK_BYTES, connections: 1 }));
    }),
  echo: (port, reportTraffic) =>
    eventually(async () => {
      const response = await exchange(port, ECHO_MESSAGE, { halfClose: true });
      reportTraffic(exactTraffic({ receivedBytes: ECHO_MESSAGE.length, sentBytes: response.length, connections: 1 }));
      if (response !== ECHO_MESSAGE) throw new Error(`not an echo: ${response}`);
    }),
  datagrams: (port, reportTraffic) =>
    eventually(async () => {
      const report = await runDatagrams({ port, seconds: 0, flows: 1 });
      reportTraffic(datagramTraffic(report, 1));
      const errors = datagramReportErrors(report);
      if (errors.length > 0) throw new Error(errors.join(', '));
    }),
};

async function exchange(port: number, text: string, { halfClose = false } = {}): Promise<string> {
  await using client = await connectClient({ port });
  await client.send(text);
  if (halfClose) await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`the connection ended with ${JSON.stringify(ending)}`);
  if (!halfClose) await client.end();
  return client.buffered.toString('latin1');
}
