// A process that runs only a relay worker on system calls. It shares nothing with the test, so the test can count its
// descriptors, force errors of its system calls, and fill its descriptor table. The test sends requests by IPC.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import type { Endpoint } from '@weir/model';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT, UNACKNOWLEDGED } from '../../../src/metering/counters.ts';
import type { Outcome } from '../../../src/metering/outcome.ts';
import { eventLoop } from '../../../src/transport/event-loop.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { countDescriptorsInMemory } from '../../fixtures/counted-descriptors.ts';
import { webService } from '../../fixtures/services.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

export interface RelayReport {
  /** How many turns the event loop of the sockets has made. */
  readonly turns: number;
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly active: number;
  readonly connections: number;
  readonly received: number;
  readonly sent: number;
  readonly unacknowledged: number;
  /** How many descriptors the process has counted in memory. */
  readonly countedDescriptors: number;
  /** Errors that the worker has reported. */
  readonly reported: readonly string[];
}

export interface RelayProcess extends AsyncDisposable {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  /** Advances the timeout wheel by `ticks` seconds, and then returns the state of the worker. */
  report(ticks?: number): Promise<RelayReport>;
  /** Returns how many descriptors the process has open. */
  descriptors(): number;
  /** Returns the open sockets, as in /proc/PID/fd. */
  sockets(): string[];
}

/** Starts the process. It relays each connection to one of the endpoints. */
export async function startRelayProcess(endpoints: readonly Endpoint[]): Promise<RelayProcess> {
  // A concurrent garbage collection wakes the event loop hundreds of times, as a loop that spins would.
  const execArgv = ['--conditions=source', '--single-threaded-gc'];
  const child = fork(import.meta.filename, [JSON.stringify(endpoints)], { execArgv });
  const { host, port } = (await answerOf(child)) as { host: string; port: number };
  const pid = child.pid as number;
  return {
    pid,
    host,
    port,
    async report(ticks = 0) {
      child.send(ticks);
      return (await answerOf(child)) as RelayReport;
    },
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
    sockets: () =>
      readdirSync(`/proc/${pid}/fd`)
        .map((name) => readlinkSync(`/proc/${pid}/fd/${name}`))
        .filter((path) => path.startsWith('socket:')),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    },
  };
}

/** Waits for the next message. Rejects if the process exits. */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const stop = new AbortController();
  const exit = once(child, 'exit', { signal: stop.signal }).then(([code, signal]) => {
    throw new Error(`the relay process has exited: ${code ?? signal}`);
  });
  exit.catch(() => undefined);
  try {
    return (await Promise.race([once(child, 'message', { signal: stop.signal }), exit]))[0];
  } finally {
    stop.abort();
  }
}

if (process.argv[1] === import.meta.filename) await run(JSON.parse(process.argv[2] ?? '') as Endpoint[]);

async function run(endpoints: readonly Endpoint[]): Promise<void> {
  allowTracing();
  process.once('disconnect', () => process.exit());
  const descriptors = countDescriptorsInMemory();
  const { host, port, row, outcomes, tick, reported } = await startWorkerInTest(webService(endpoints), {
    transport: epollTransport,
  });
  const counter = (column: number): number => row[column] as number;
  process.on('message', (ticks: number) => {
    tick(ticks);
    const report: RelayReport = {
      turns: eventLoop.turn,
      outcomes: outcomes(),
      active: counter(ACTIVE),
      connections: counter(CONNECTIONS),
      received: counter(RECEIVED),
      sent: counter(SENT),
      unacknowledged: counter(UNACKNOWLEDGED),
      countedDescriptors: descriptors.open,
      reported: reported.map(String),
    };
    process.send?.(report);
  });
  process.send?.({ host, port });
}

/** Lets strace, which is not an ancestor of this process, attach to it under Yama's `ptrace_scope` of 1: prctl(2). */
function allowTracing(): void {
  const ffi = process.getBuiltinModule('node:ffi');
  const prctl = { return: 'int32', arguments: ['int32', 'uint64', 'uint64', 'uint64', 'uint64'] } as const;
  const PR_SET_PTRACER = 0x59616d61;
  const PR_SET_PTRACER_ANY = 0xffff_ffff_ffff_ffffn;
  // Fails without Yama, where no permission is needed.
  ffi.dlopen(null, { prctl }).functions.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0n, 0n, 0n);
}
