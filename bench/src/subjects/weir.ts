import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, spawnProcess, temporaryDirectory } from '@weir/testkit';
import type { Ledger, Metered, Ports, Subject } from './subject.ts';
import { manifestsFor } from './weir-manifests.ts';

// What the bin runs in a checkout; started directly, since a profile does not survive that the bin replaces itself.
const program = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));

/** The real thing: controller, console and a proxy of one worker in one process; all their CPU time is counted. */
export async function startWeir(backends: Ports, options: { readonly profile?: string } = {}): Promise<Subject> {
  if (!existsSync(program)) throw new Error('packages/cli/src is not here; measure others with --subjects');
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-weir'));
  const ports = { answers: await freePort(), bulk: await freePort() };
  writeFileSync(join(directory.path, 'services.yaml'), manifestsFor(ports, backends));
  const profiling = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [];
  const command = ['standalone', '-f', directory.path, '--workers', '1', '--console', '127.0.0.1:0'];
  const weir = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', ...profiling, program, ...command],
      name: 'weir standalone',
      readyWhen: /\bready\b.*http:\/\/\S+/,
      mayExit: true,
    }),
  );
  const [, console] = /\bready\b.*?(http:\/\/[^\s"]+)/.exec(weir.output()) ?? [];
  const started = cleanup.move();
  return {
    name: 'weir',
    description: 'weir standalone, 1 worker, metering on; controller and console in the same process',
    pid: weir.pid,
    ports,
    ledger: () => readLedger(new URL('api/v1/usage', console)),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

type UsageAnswer = {
  readonly items: readonly { readonly services: readonly ({ readonly name: string } & Metered)[] }[];
};

async function readLedger(url: URL): Promise<Ledger> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  const { items } = (await response.json()) as UsageAnswer;
  const services = items.flatMap((item) => item.services);
  const metered = (name: string): Metered =>
    services.find((service) => service.name === name) ?? { receivedBytes: 0, sentBytes: 0, connections: 0 };
  return { answers: metered('answers'), bulk: metered('bulk') };
}
