import { setTimeout } from 'node:timers/promises';
import { connectRaw, eventually } from '@weir/testkit';
import { takeBulk } from '../load/bulk-sink.ts';
import { cpuTimeOf } from '../measure/cpu-time.ts';
import { differences, exactly, type Moved, nothing, plus } from '../measure/moved.ts';
import type { Reading } from '../report/result.ts';
import type { Ledger, Ports, Subject } from '../subjects/subject.ts';
import type { Scenario } from './scenario.ts';

const probe = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const probeBytes = 3_000_001;
const betweenFlushesMs = 1_500;

/** A subject in the running, and the account of what was moved through it. */
export class Contender {
  readonly subject: Subject;
  #moved: Record<keyof Ports, Moved> = { answers: nothing, bulk: nothing };

  constructor(subject: Subject) {
    this.subject = subject;
  }

  /** Waits until both ports relay, and sees that what comes back is the backend's answer. */
  async prove(): Promise<void> {
    const { answers, bulk } = this.subject.ports;
    await eventually(async () => {
      const answer = await ask(answers);
      this.#add('answers', exactly({ receivedBytes: probe.length, sentBytes: answer.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes for whoever asks\n$/s.test(answer))
        throw new Error(`not nginx's answer: ${answer}`);
    });
    await eventually(async () => {
      const { requestBytes } = await takeBulk(bulk, probeBytes);
      this.#add('bulk', exactly({ receivedBytes: requestBytes, sentBytes: probeBytes, connections: 1 }));
    });
  }

  /** One turn. Throws when it is not valid. */
  async run(scenario: Scenario, seconds: number): Promise<Reading> {
    const { name, pid, ports } = this.subject;
    const before = cpuTimeOf(pid);
    const load = await scenario.run(ports[scenario.backend], seconds);
    const after = cpuTimeOf(pid);
    const userMs = after.userMs - before.userMs;
    const systemMs = after.systemMs - before.systemMs;
    this.#add(scenario.backend, load.moved);
    if (load.complaints.length > 0) throw new Error(`${scenario.name} through ${name}: ${load.complaints.join(', ')}`);
    const figure = scenario.figure(userMs + systemMs, load);
    return { figure, userMs, systemMs, count: load.count, ms: load.ms };
  }

  /** Compares the subject's own ledger, once it has settled, with what was moved. Throws when they differ. */
  async audit(): Promise<void> {
    const { name, ledger: read } = this.subject;
    if (read === undefined) return;
    const ledger = await settled(read);
    for (const backend of ['answers', 'bulk'] as const) {
      const wrong = differences(ledger[backend], this.#moved[backend]);
      if (wrong.length > 0) throw new Error(`the ledger of ${name} is wrong for "${backend}": ${wrong.join('; ')}`);
    }
  }

  #add(backend: keyof Ports, moved: Moved): void {
    this.#moved[backend] = plus(this.#moved[backend], moved);
  }
}

async function ask(port: number): Promise<string> {
  await using client = await connectRaw({ port });
  await client.send(probe);
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`a probe ended by ${JSON.stringify(ending)}`);
  await client.end();
  return client.buffered.toString('latin1');
}

/** The ledger is written once a second: it has settled when two readings further apart than that are equal. */
async function settled(read: () => Promise<Ledger>): Promise<Ledger> {
  for (let last = await read(), attempt = 0; attempt < 10; attempt++) {
    await setTimeout(betweenFlushesMs);
    const before = last;
    last = await read();
    if (JSON.stringify(before) === JSON.stringify(last)) return last;
  }
  throw new Error('the ledger goes on changing without traffic');
}
