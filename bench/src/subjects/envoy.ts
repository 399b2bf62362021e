import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programPath, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { envoyConfiguration } from './envoy-configuration.ts';
import { freePorts } from './free-ports.ts';
import type { BackendPorts, Subject } from './subject.ts';

export async function startEnvoy(backends: BackendPorts): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-envoy'));
  const ports = await freePorts();
  const configuration = join(directory.path, 'envoy.json');
  writeFileSync(configuration, JSON.stringify(envoyConfiguration(ports, backends)));
  const args = ['--config-path', configuration, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'off'];
  const envoy = cleanup.use(await spawnProcess({ command: programPath('envoy'), args, name: 'envoy', mayExit: true }));
  const started = cleanup.move();
  return {
    name: 'envoy',
    description: 'Envoy, tcp_proxy and udp_proxy, --concurrency 1, no admin, no access log',
    pid: envoy.pid,
    output: envoy.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
