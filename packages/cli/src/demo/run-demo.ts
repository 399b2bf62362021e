import { createLogger, type HostPort, systemClock, wait } from '@weir/runtime';
import { ConsoleClient } from '../client/console-client.ts';
import { directTransport } from '../client/transport.ts';
import { EXIT_OK, EXIT_PROBLEM, type ExitCode } from '../command-context.ts';
import { colourizeFor } from '../output/ansi.ts';
import { problemText } from '../output/problem-text.ts';
import { type RunningStandalone, startStandalone } from '../standalone/start-standalone.ts';
import type { Terminal } from '../terminal.ts';
import { type Backends, startBackends } from './backends.ts';
import type { DemoNetwork } from './demo-network.ts';
import { copyDemoManifests } from './demo-network.ts';
import {
  type DemoContext,
  DemoReport,
  isExpectedProblem,
  showAddresses,
  showBandwidth,
  showSuspension,
  showUsage,
} from './steps.ts';
import { type DemoClients, startDemoClients } from './traffic.ts';

export interface DemoOptions {
  readonly network: DemoNetwork;
  readonly console: HostPort;
  /** One round, and then the bill. */
  readonly once: boolean;
}

/** Time for a watcher to look around. */
const STEP_PAUSE_MS = 12_000;
const WARM_UP_MS = 1_500;

/** Three tenants on this machine; answers whether everything was as it said. */
export async function runDemo(options: DemoOptions, terminal: Terminal): Promise<ExitCode> {
  const report = new DemoReport(terminal);
  const opened: (() => Promise<void>)[] = [];
  try {
    const backends = await startBackends(options.network);
    opened.unshift(backends.close);
    const manifests = await copyDemoManifests(options.network);
    opened.unshift(manifests.close);
    const standalone = await startDemoStandalone(options, manifests.directory, terminal);
    opened.unshift(standalone.close);
    const url = standalone.consoleUrl ?? '';
    printIntroduction(report, { url, directory: manifests.directory });

    const stage: DemoContext = {
      client: new ConsoleClient(async () => directTransport({ server: url })),
      report,
      signal: terminal.signal,
    };
    const services = await showAddresses(stage);
    // Without addresses there is nothing to go on with.
    if (report.failures.length > 0) return conclude(report, terminal);
    const clients = startDemoClients(services);
    opened.unshift(clients.stop);
    if (options.once) await runOnce(stage, clients, backends);
    else await runRepeatedly(stage, clients);
  } catch (error) {
    if (!terminal.signal.aborted) throw error;
  } finally {
    // The clients first: nobody is thrown out of a demo that ends.
    for (const close of opened) await close();
  }
  return conclude(report, terminal);
}

async function runOnce(stage: DemoContext, clients: DemoClients, backends: Backends): Promise<void> {
  await wait(systemClock, WARM_UP_MS, stage.signal);
  await showBandwidth(stage);
  await showSuspension(stage, clients);
  await wait(systemClock, WARM_UP_MS, stage.signal);
  await clients.stop();
  await showUsage(stage, clients, backends);
}

async function runRepeatedly(stage: DemoContext, clients: DemoClients): Promise<void> {
  for (;;) {
    await wait(systemClock, STEP_PAUSE_MS, stage.signal);
    await showBandwidth(stage);
    await wait(systemClock, STEP_PAUSE_MS, stage.signal);
    await showSuspension(stage, clients);
    stage.report.info('It begins again in a while; Ctrl-C ends the demo.');
  }
}

function startDemoStandalone(options: DemoOptions, directory: string, terminal: Terminal): Promise<RunningStandalone> {
  const paint = colourizeFor(terminal.colour);
  return startStandalone({
    filename: [directory],
    console: options.console,
    workers: 1,
    log: createLogger({ name: 'demo', level: 'error' }),
    signal: terminal.signal,
    onProblemChanges: ({ appeared }) => {
      for (const problem of appeared) {
        if (!isExpectedProblem(problem)) terminal.err(`  ${problemText(problem, paint)}\n`);
      }
    },
  });
}

function printIntroduction(findings: DemoReport, { url, directory }: { url: string; directory: string }): void {
  findings.title('Weir: three tenants, two nodes, one machine');
  findings.info(`console    ${url}`);
  findings.info(`manifests  ${directory} (edit them: what changes is served at once)`);
  findings.info(`ask it     npx weir top --server ${url}`);
}

function conclude(findings: DemoReport, terminal: Terminal): ExitCode {
  if (terminal.signal.aborted) findings.info('Ended.');
  else if (findings.failures.length === 0) findings.title('Everything was as it said.');
  else findings.title(`Not as it said: ${findings.failures.join('; ')}`);
  return findings.failures.length === 0 ? EXIT_OK : EXIT_PROBLEM;
}
