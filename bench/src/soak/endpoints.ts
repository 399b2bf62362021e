import { connect } from 'node:net';
import { basename } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { freePort, type SpawnedProcess, spawnProcess } from '@weir/testkit';
import type { EndpointTotals } from './endpoint-process.ts';
import { endpointAddress, SERVICE_NAMES, SERVICES, type ServiceName } from './services.ts';

export type Endpoints = AsyncDisposable & {
  /** The port of the endpoints, by Service. */
  readonly ports: Readonly<Record<ServiceName, number>>;
  totals(): Promise<Readonly<Record<ServiceName, EndpointTotals>>>;
};

const NO_TRAFFIC: EndpointTotals = { connections: 0, open: 0, read: 0, written: 0 };

export async function startEndpoints(): Promise<Endpoints> {
  await using cleanup = new AsyncDisposableStack();
  const unresponsive = cleanup.use(
    await startProgram(
      new URL('./unresponsive-endpoint-process.ts', import.meta.url),
      endpointAddress(0),
      /^port \d+$/m,
    ),
  );
  const wanted = Object.fromEntries(SERVICE_NAMES.map((name) => [name, listeningEndpoints(name)]));
  const listening = cleanup.use(
    await startProgram(new URL('./endpoint-process.ts', import.meta.url), JSON.stringify(wanted), /^ports \{.*\}$/m),
  );
  const [, unresponsivePort] = /^port (\d+)$/m.exec(unresponsive.output()) ?? [];
  const [, json = '{}'] = /^ports (\{.*\})$/m.exec(listening.output()) ?? [];
  const { control = 0, ...found } = JSON.parse(json) as Record<string, number>;
  const ports = { ...found, unresponsive: Number(unresponsivePort), refused: await freePort() } as Record<
    ServiceName,
    number
  >;
  const started = cleanup.move();
  return {
    ports,
    async totals() {
      const totals = JSON.parse(await text(connect({ host: '127.0.0.1', port: control }))) as Record<
        string,
        EndpointTotals
      >;
      return Object.fromEntries(SERVICE_NAMES.map((name) => [name, totals[name] ?? NO_TRAFFIC])) as Record<
        ServiceName,
        EndpointTotals
      >;
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function listeningEndpoints(name: ServiceName): { address: string; behaviour: string }[] {
  return SERVICES[name].endpoints.flatMap((behaviour, index) =>
    behaviour === 'refuse' || behaviour === 'unresponsive' ? [] : [{ address: endpointAddress(index), behaviour }],
  );
}

function startProgram(program: URL, argument: string, readyWhen: RegExp): Promise<SpawnedProcess> {
  const file = fileURLToPath(program);
  const args = ['--conditions=source', file, argument];
  return spawnProcess({ command: process.execPath, args, name: basename(file), readyWhen });
}
