import type { Subject } from '../../subjects/subject.ts';
import { startWeirServices, type WeirOptions } from '../../subjects/weir.ts';
import { serviceManifest, tenantPolicyManifest, tlsSecretManifest } from '../../subjects/weir-manifests.ts';
import type { L7Listener, L7Ports } from '../listeners.ts';
import { ROUTES } from '../routes.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

const NAMESPACE = 'bench';
const SECRET = 'bench-tls';
const LISTENERS_WITHOUT_ROUTES: readonly L7Listener[] = ['http', 'https', 'http2', 'grpc'];

/**
 * Starts Weir with metering, and with limits that are never reached. The Services of the listener `routes` exist only if the listener is
 * measured, because each of its 1,000 routes is a Service.
 */
export async function startWeirHttp(
  input: L7SubjectInput,
  { listener, ...options }: WeirOptions & { readonly listener?: L7Listener },
): Promise<Subject<L7Listener>> {
  const ports = await freeL7Ports();
  const hasRoutes = listener === 'routes';
  return await startWeirServices<L7Listener>(
    {
      manifests: weirHttpManifests(ports, { ...input, hasRoutes }),
      ports,
      backends: hasRoutes ? [...LISTENERS_WITHOUT_ROUTES, 'routes'] : LISTENERS_WITHOUT_ROUTES,
      standaloneArguments: hasRoutes ? ['--shared-ports', String(ports.routes)] : [],
    },
    { ...options, limits: 'inactive' },
  );
}

export function weirHttpManifests(
  ports: L7Ports,
  { backendPort, grpcBackendPort, certificate, hasRoutes }: L7SubjectInput & { readonly hasRoutes: boolean },
): string {
  const service = (name: string, port: number, annotations: Readonly<Record<string, string>> = {}): string =>
    serviceManifest(
      { name, namespace: NAMESPACE, protocol: 'TCP', port, appProtocol: 'http', annotations },
      { target: backendPort, addresses: ['127.0.0.1'] },
    );
  const calls = serviceManifest(
    { name: 'grpc', namespace: NAMESPACE, protocol: 'TCP', port: ports.grpc, appProtocol: 'grpc' },
    { target: grpcBackendPort, addresses: ['127.0.0.1'] },
  );
  const routes = ROUTES.map(({ backend, host, pathPrefix }) =>
    service(backend, ports.routes, { hosts: host, 'path-prefix': pathPrefix }),
  );
  return [
    service('http', ports.http),
    service('https', ports.https, { 'tls-secret': SECRET, 'tls-ports': String(ports.https) }),
    tlsSecretManifest({ name: SECRET, namespace: NAMESPACE }, certificate),
    service('http2', ports.http2),
    calls,
    ...(hasRoutes ? routes : []),
    tenantPolicyManifest('inactive', hasRoutes ? ['*.example'] : []),
  ].join('---\n');
}
