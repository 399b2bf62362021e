import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, programPath, spawnProcess, temporaryDirectory } from '@weir/testkit';
import type { Ports, Subject } from './subject.ts';

/** One process of one thread in mode tcp; it may splice(2), which is at its best for bulk. */
export async function startHaproxy(backends: Ports): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-haproxy'));
  const ports = { answers: await freePort(), bulk: await freePort() };
  const configuration = join(directory.path, 'haproxy.cfg');
  writeFileSync(configuration, configurationFor(ports, backends));
  const path = programPath('haproxy');
  const haproxy = cleanup.use(
    await spawnProcess({ command: path, args: ['-db', '-f', configuration], name: 'haproxy', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'haproxy',
    description: 'HAProxy, mode tcp, 1 thread, splice-auto',
    pid: haproxy.pid,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function configurationFor(ports: Ports, backends: Ports): string {
  return `
global
  nbthread 1
  maxconn 4096
defaults
  mode tcp
  option splice-auto
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen answers
  bind 127.0.0.1:${ports.answers}
  server nginx 127.0.0.1:${backends.answers}
listen bulk
  bind 127.0.0.1:${ports.bulk}
  server source 127.0.0.1:${backends.bulk}
`;
}
