import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { L7Backend } from './backend.ts';

/** A unary call of gRPC. Request and response are messages of five bytes, each with a prefix of five bytes. */
export const GRPC_CALL: {
  readonly path: string;
  readonly fields: readonly string[];
  readonly request: Buffer;
  readonly response: Buffer;
} = {
  path: '/weir.bench.Echo/Unary',
  fields: ['content-type: application/grpc', 'te: trailers', 'user-agent: grpc-go/1.84.0'],
  request: Buffer.from([0, 0, 0, 0, 5, 0x0a, 3, 0x61, 0x62, 0x63]),
  response: Buffer.from([0, 0, 0, 0, 5, 0x0a, 3, 0x78, 0x79, 0x7a]),
};

/** Starts nghttpd in one thread. It answers each call with a file, and with `grpc-status: 0` in trailers. */
export async function startGrpcBackend(): Promise<L7Backend> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-l7-grpc')).path;
  const port = await freePort();
  const file = join(directory, GRPC_CALL.path);
  mkdirSync(dirname(file));
  writeFileSync(file, GRPC_CALL.response);
  // nghttpd sends no content type for a file without an extension.
  const options = ['--no-tls', '--no-content-length', '--trailer', 'grpc-status: 0', '--htdocs', directory];
  const args = [...options, '--address', '127.0.0.1', String(port)];
  const nghttpd = cleanup.use(
    await spawnProcess({ command: programPath('nghttpd'), args, name: 'nghttpd', mayExit: true }),
  );
  const started = cleanup.move();
  return { port, pid: nghttpd.pid, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
