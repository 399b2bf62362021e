import { createLogger, type HostPort, type LineOutput, systemClock, wait } from '@weir/runtime';
import { ConsoleClient } from '../client/console-client.ts';
import { directTransport } from '../client/transport.ts';
import { EXIT_OK, EXIT_PROBLEM, type ExitCode } from '../command-context.ts';
import { colourizeFor } from '../output/ansi.ts';
import { problemText } from '../output/problem-text.ts';
import { type RunningStandalone, startStandalone } from '../standalone/start-standalone.ts';
import { transportSettingsFrom } from '../standalone/transport-setting.ts';
import type { Terminal } from '../terminal.ts';
import { type Backends, startBackends } from './backends.ts';
import { type DemoClients, startDemoClients } from './demo-clients.ts';
import { addressIn, copyDemoManifests, type DemoNetwork } from './demo-network.ts';
import {
  type DemoContext,
  DemoReport,
  isExpectedProblem,
  showAddresses,
  showBandwidth,
  showSuspension,
  showUsage,
} from './steps.ts';

export interface DemoOptions {
  readonly network: DemoNetwork;
  readonly console: HostPort;
  /** Whether to run the steps only once. The demo then also compares the usage with the clients' own counts. */
  readonly once: boolean;
}

/** Pause between two steps, so that the user can look at the console. */
const STEP_PAUSE_MS = 12_000;
const WARM_UP_MS = 1_500;

/** The port that the HTTP Services of the shop share. */
const SHOP_PORT = 18_080;
/** `weir logs` shows the access log. Its lines would hide the steps of the demo. */
const NO_OUTPUT: LineOutput = { write: async () => {} };

/** Runs the demo: three tenants on this machine. The exit code says whether every check passed. */
export async function runDemo(options: DemoOptions, terminal: Terminal): Promise<ExitCode> {
  const report = new DemoReport(terminal);
  const closers: (() => Promise<void>)[] = [];
  try {
    const backends = await startBackends(options.network);
    closers.unshift(backends.close);
    const manifests = await copyDemoManifests(options.network);
    closers.unshift(manifests.close);
    const standalone = await startDemoStandalone(options, manifests.directory, terminal);
    closers.unshift(standalone.close);
    const url = standalone.consoleUrl ?? '';
    printIntroduction(report, { url, directory: manifests.directory, network: options.network });

    const context: DemoContext = {
      client: new ConsoleClient(async () => directTransport({ server: url })),
      report,
      signal: terminal.signal,
    };
    const services = await showAddresses(context);
    // The clients cannot start if a Service has no address.
    if (report.failures.length > 0) return conclude(report, terminal);
    const clients = startDemoClients(services);
    closers.unshift(clients.stop);
    if (options.once) await runOnce(context, clients, backends);
    else await runRepeatedly(context, clients);
  } catch (error) {
    if (!terminal.signal.aborted) throw error;
  } finally {
    // Closes in reverse order of the start: the clients first, so that the end of the demo does not reset their connections.
    for (const close of closers) await close();
  }
  return conclude(report, terminal);
}

async function runOnce(context: DemoContext, clients: DemoClients, backends: Backends): Promise<void> {
  await wait(systemClock, WARM_UP_MS, context.signal);
  await showBandwidth(context);
  await showSuspension(context, clients);
  await wait(systemClock, WARM_UP_MS, context.signal);
  await clients.stop();
  await showUsage(context, clients, backends);
}

async function runRepeatedly(context: DemoContext, clients: DemoClients): Promise<void> {
  for (;;) {
    await wait(systemClock, STEP_PAUSE_MS, context.signal);
    await showBandwidth(context);
    await wait(systemClock, STEP_PAUSE_MS, context.signal);
    await showSuspension(context, clients);
    context.report.info('The next round begins in a moment; Ctrl-C ends the demo.');
  }
}

async function startDemoStandalone(
  options: DemoOptions,
  directory: string,
  terminal: Terminal,
): Promise<RunningStandalone> {
  const paint = colourizeFor(terminal.colour);
  return startStandalone({
    filename: [directory],
    console: options.console,
    sharedPorts: [SHOP_PORT],
    workers: 1,
    accessLogOutput: NO_OUTPUT,
    ...(await transportSettingsFrom(terminal.env)),
    log: createLogger({ name: 'demo', level: 'error' }),
    signal: terminal.signal,
    onProblemChanges: ({ appeared }) => {
      for (const problem of appeared) {
        if (!isExpectedProblem(problem)) terminal.err(`  ${problemText(problem, paint)}\n`);
      }
    },
  });
}

interface Introduction {
  readonly url: string;
  readonly directory: string;
  readonly network: DemoNetwork;
}

function printIntroduction(report: DemoReport, { url, directory, network }: Introduction): void {
  report.title('Weir: three tenants, two nodes, one machine');
  report.info(`console    ${url}`);
  report.info(`manifests  ${directory} (edit the files: every change takes effect at once)`);
  report.info(`shop       curl -H 'Host: shop.example' http://${addressIn(network, 31)}:${SHOP_PORT}/`);
  report.info(`try        npx weir top --server ${url}`);
  report.info(`           npx weir logs shop/api --server ${url}`);
}

function conclude(report: DemoReport, terminal: Terminal): ExitCode {
  if (terminal.signal.aborted) report.info('The demo has ended.');
  else if (report.failures.length === 0) report.title('All checks passed.');
  else report.title(`Failed checks: ${report.failures.join('; ')}`);
  return report.failures.length === 0 ? EXIT_OK : EXIT_PROBLEM;
}
