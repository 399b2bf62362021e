// What makes the console an API of the cluster, console.weir.dev/v1: kubectl and the weir command reach it by any kubeconfig, through
// the API server, at /apis/console.weir.dev/v1/….
import type { FastifyInstance } from 'fastify';

const GROUP_VERSION = 'console.weir.dev/v1';
const PREFIX = `/apis/${GROUP_VERSION}`;

/** The path of the console's own API that an aggregated one means. */
export function toConsolePath(url: string): string {
  return url.startsWith(`${PREFIX}/`) ? `/api/v1${url.slice(PREFIX.length)}` : url;
}

export function isAggregatedPath(url: string): boolean {
  return url.startsWith('/apis/');
}

/** What kubectl and every other client of Kubernetes look for in an answer that is a refusal. */
export function kubernetesStatusFor({ code, message, status }: ErrorFields): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: code, message, code: status };
}

interface ErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

/** Asked by the API server itself, and by everybody's discovery: the same for all. */
export function aggregatedRoutes(app: FastifyInstance): void {
  const documents: Readonly<Record<string, object>> = {
    [PREFIX]: {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: GROUP_VERSION,
      // One of them, with a name that is no other's: an empty list is an error to kubectl, and `services` are what a user means by it.
      resources: [{ name: 'me', singularName: 'me', namespaced: false, kind: 'Me', verbs: ['get'] }],
    },
    // The API server puts the schemas of all together; of none it asks again and again, and says so in its log.
    '/openapi/v2': { swagger: '2.0', info: { title: 'Weir console', version: 'v1' }, paths: {} },
    '/openapi/v3': { paths: {} },
  };
  for (const [path, document] of Object.entries(documents)) {
    app.get(path, { config: { access: 'anybody' }, schema: { hide: true } }, async () => document);
  }
}
