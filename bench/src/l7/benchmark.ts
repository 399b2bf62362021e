import { makeCertificate } from '@weir/testkit';
import { runComparison } from '../comparison/benchmark.ts';
import type { ComparisonRunOptions, StartOptions } from '../comparison/comparison-run.ts';
import { L7_PROGRAMS, provideSubjects } from '../provide-programs.ts';
import type { Subject } from '../subjects/subject.ts';
import { startL7Backend } from './backend.ts';
import { startGrpcBackend } from './grpc-backend.ts';
import type { L7Listener, L7SubjectName } from './listeners.ts';
import type { L7Options } from './options.ts';
import { L7_RELAY_CHECKS } from './relay-checks.ts';
import { L7_SCENARIOS } from './scenarios.ts';
import { startEnvoyHttp } from './subjects/envoy-http.ts';
import { startHaproxyHttp } from './subjects/haproxy-http.ts';
import { startHttpProxy } from './subjects/http-proxy.ts';
import { startNginxHttp } from './subjects/nginx-http.ts';
import type { L7SubjectInput } from './subjects/subject-input.ts';
import { startWeirHttp } from './subjects/weir-http.ts';

/** Returns the exit code: 1 if a scenario is invalid. The other scenarios still run, but no result is written. */
export async function benchmarkL7(options: L7Options, signal: AbortSignal): Promise<number> {
  const programs = await provideSubjects(options, ['nginx', 'nghttpd', 'wrk', 'h2load'], L7_PROGRAMS);
  await using backend = await startL7Backend();
  await using grpcBackend = await startGrpcBackend();
  const ports = { backendPort: backend.port, grpcBackendPort: grpcBackend.port };
  const input = { ...ports, certificate: makeCertificate({ name: 'bench.example' }) };
  const run: ComparisonRunOptions<L7Listener, L7SubjectName> = {
    ...options,
    ...{ subjects: programs.subjects, signal, checks: L7_RELAY_CHECKS },
    start: (name, startOptions) => startL7Subject(name, input, startOptions),
    direct: {
      name: 'direct',
      description: 'no proxy',
      pid: backend.pid,
      ports: {
        http: backend.port,
        routes: backend.port,
        https: backend.port,
        http2: backend.port,
        grpc: grpcBackend.port,
      },
      [Symbol.asyncDispose]: async () => {},
    },
  };
  return await runComparison({ name: 'l7', programs, scenarios: L7_SCENARIOS, selected: options.scenarios, run });
}

function startL7Subject(
  name: L7SubjectName,
  input: L7SubjectInput,
  { backend: listener, ...options }: StartOptions<L7Listener>,
): Promise<Subject<L7Listener>> {
  switch (name) {
    case 'weir':
      return startWeirHttp(input, { ...options, ...(listener === undefined ? {} : { listener }) });
    case 'haproxy':
      return startHaproxyHttp(input);
    case 'nginx':
      return startNginxHttp(input);
    case 'envoy':
      return startEnvoyHttp(input);
    case 'http-proxy':
      return startHttpProxy(input);
  }
}
