import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import type { Subject } from '../../subjects/subject.ts';
import type { L7Listener } from '../listeners.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

const PROGRAM = fileURLToPath(new URL('./http-proxy-process.ts', import.meta.url));

/** Starts a Node process with the package `http-proxy`. */
export async function startHttpProxy({ backendPort, certificate }: L7SubjectInput): Promise<Subject<L7Listener>> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-http-proxy')).path;
  const ports = await freeL7Ports();
  const files = { certificate: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') };
  writeFileSync(files.certificate, certificate.chain);
  writeFileSync(files.key, certificate.key);
  const listening = [ports.http, ports.routes, ports.https].map(String);
  const proxy = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: [
        '--conditions=source',
        '--no-deprecation',
        PROGRAM,
        String(backendPort),
        ...listening,
        files.certificate,
        files.key,
      ],
      name: 'http-proxy',
      readyWhen: /^ready$/m,
      mayExit: true,
    }),
  );
  const started = cleanup.move();
  return {
    name: 'http-proxy',
    description: `http-proxy on Node ${process.versions.node}, an agent with keepAlive; routes: a Map per host, then a list of path prefixes`,
    pid: proxy.pid,
    output: proxy.output,
    ports,
    unsupported: { http2: 'http-proxy accepts no HTTP/2', grpc: 'http-proxy accepts no HTTP/2' },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
