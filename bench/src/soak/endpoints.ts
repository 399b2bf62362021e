import { connect } from 'node:net';
import { basename } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { freePort, type SpawnedProcess, spawnProcess } from '@weir/testkit';
import type { EndpointCount } from './endpoint-process.ts';
import { endpointAddress, type ServiceName, serviceNames, services } from './services.ts';

export type Endpoints = AsyncDisposable & {
  /** Where the endpoints of each Service listen, or would. */
  readonly ports: Readonly<Record<ServiceName, number>>;
  counts(): Promise<Readonly<Record<ServiceName, EndpointCount>>>;
};

const none: EndpointCount = { connections: 0, open: 0, read: 0, written: 0 };

export async function startEndpoints(): Promise<Endpoints> {
  await using cleanup = new AsyncDisposableStack();
  const deaf = cleanup.use(
    await start(new URL('./deaf-process.ts', import.meta.url), endpointAddress(0), /^port \d+$/m),
  );
  const wanted = Object.fromEntries(serviceNames.map((name) => [name, listenersOf(name)]));
  const listening = cleanup.use(
    await start(new URL('./endpoint-process.ts', import.meta.url), JSON.stringify(wanted), /^ports \{.*\}$/m),
  );
  const [, deafPort] = /^port (\d+)$/m.exec(deaf.output()) ?? [];
  const [, json = '{}'] = /^ports (\{.*\})$/m.exec(listening.output()) ?? [];
  const { control = 0, ...found } = JSON.parse(json) as Record<string, number>;
  const ports = { ...found, deaf: Number(deafPort), refused: await freePort() } as Record<ServiceName, number>;
  const started = cleanup.move();
  return {
    ports,
    async counts() {
      const told = JSON.parse(await text(connect({ host: '127.0.0.1', port: control }))) as Record<
        string,
        EndpointCount
      >;
      return Object.fromEntries(serviceNames.map((name) => [name, told[name] ?? none])) as Record<
        ServiceName,
        EndpointCount
      >;
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function listenersOf(name: ServiceName): { address: string; behaviour: string }[] {
  return services[name].endpoints.flatMap((behaviour, index) =>
    behaviour === 'refuse' || behaviour === 'deaf' ? [] : [{ address: endpointAddress(index), behaviour }],
  );
}

function start(program: URL, argument: string, readyWhen: RegExp): Promise<SpawnedProcess> {
  const file = fileURLToPath(program);
  const args = ['--conditions=source', file, argument];
  return spawnProcess({ command: process.execPath, args, name: basename(file), readyWhen });
}
