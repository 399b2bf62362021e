import { createLogger, type HostPort, systemClock, wait } from '@weir/runtime';
import { ConsoleClient } from '../client/console-client.ts';
import { directWay } from '../client/direct-way.ts';
import { type ExitCode, FINE, PROBLEM } from '../exit-code.ts';
import { paintFor } from '../output/colour.ts';
import { problemText } from '../output/problem-text.ts';
import { type RunningStandalone, startStandalone } from '../standalone/start-standalone.ts';
import type { Terminal } from '../terminal.ts';
import { type Backends, startBackends } from './backends.ts';
import { type Clients, startClients } from './clients.ts';
import { copyManifests } from './demo-manifests.ts';
import type { DemoNetwork } from './demo-network.ts';
import { Findings } from './findings.ts';
import { addressesScene, bandwidthScene, isOfTheStory, type Stage, suspensionScene, usageScene } from './scenes.ts';

export interface DemoOptions {
  readonly network: DemoNetwork;
  readonly console: HostPort;
  /** One round, and then the bill. */
  readonly once: boolean;
}

/** Time for a watcher to look around. */
const LOOK_AROUND_MS = 12_000;
const FIRST_SECONDS_MS = 1_500;

/** Three tenants on this machine; answers whether everything was as it said. */
export async function runDemo(options: DemoOptions, terminal: Terminal): Promise<ExitCode> {
  const findings = new Findings(terminal);
  const opened: (() => Promise<void>)[] = [];
  try {
    const backends = await startBackends(options.network);
    opened.unshift(backends.close);
    const manifests = await copyManifests(options.network);
    opened.unshift(manifests.close);
    const standalone = await startDemoFleet(options, manifests.directory, terminal);
    opened.unshift(standalone.close);
    const url = standalone.consoleUrl ?? '';
    introduce(findings, { url, directory: manifests.directory });

    const stage: Stage = {
      client: new ConsoleClient(async () => directWay({ server: url })),
      findings,
      signal: terminal.signal,
    };
    const services = await addressesScene(stage);
    // Without addresses there is nothing to go on with.
    if (findings.wrong.length > 0) return conclude(findings, terminal);
    const clients = startClients(services);
    opened.unshift(clients.stop);
    if (options.once) await oneRound(stage, clients, backends);
    else await roundAfterRound(stage, clients);
  } catch (error) {
    if (!terminal.signal.aborted) throw error;
  } finally {
    // The clients first: nobody is thrown out of a demo that ends.
    for (const close of opened) await close();
  }
  return conclude(findings, terminal);
}

async function oneRound(stage: Stage, clients: Clients, backends: Backends): Promise<void> {
  await wait(systemClock, FIRST_SECONDS_MS, stage.signal);
  await bandwidthScene(stage);
  await suspensionScene(stage, clients);
  await wait(systemClock, FIRST_SECONDS_MS, stage.signal);
  await clients.stop();
  await usageScene(stage, clients, backends);
}

async function roundAfterRound(stage: Stage, clients: Clients): Promise<void> {
  for (;;) {
    await wait(systemClock, LOOK_AROUND_MS, stage.signal);
    await bandwidthScene(stage);
    await wait(systemClock, LOOK_AROUND_MS, stage.signal);
    await suspensionScene(stage, clients);
    stage.findings.tell('It begins again in a while; Ctrl-C ends the demo.');
  }
}

function startDemoFleet(options: DemoOptions, directory: string, terminal: Terminal): Promise<RunningStandalone> {
  const paint = paintFor(terminal.colour);
  return startStandalone({
    filename: [directory],
    console: options.console,
    workers: 1,
    log: createLogger({ name: 'demo', level: 'error' }),
    signal: terminal.signal,
    onProblems: ({ come }) => {
      for (const problem of come) {
        if (!isOfTheStory(problem)) terminal.err(`  ${problemText(problem, paint)}\n`);
      }
    },
  });
}

function introduce(findings: Findings, { url, directory }: { url: string; directory: string }): void {
  findings.title('Weir: three tenants, two nodes, one machine');
  findings.tell(`console    ${url}`);
  findings.tell(`manifests  ${directory} (edit them: what changes is served at once)`);
  findings.tell(`ask it     npx weir top --server ${url}`);
}

function conclude(findings: Findings, terminal: Terminal): ExitCode {
  if (terminal.signal.aborted) findings.tell('Ended.');
  else if (findings.wrong.length === 0) findings.title('Everything was as it said.');
  else findings.title(`Not as it said: ${findings.wrong.join('; ')}`);
  return findings.wrong.length === 0 ? FINE : PROBLEM;
}
