// The routes of the aggregated API console.weir.dev/v1. Through this API, kubectl and the weir command reach the console at
// /apis/console.weir.dev/v1/… of the API server, with any kubeconfig.
import type { FastifyInstance } from 'fastify';

const GROUP_VERSION = 'console.weir.dev/v1';
const PREFIX = `/apis/${GROUP_VERSION}`;

/** Rewrites a path of the aggregated API to the console's own path under `/api/v1`. */
export function toConsolePath(url: string): string {
  return url.startsWith(`${PREFIX}/`) ? `/api/v1${url.slice(PREFIX.length)}` : url;
}

export function isAggregatedPath(url: string): boolean {
  return url.startsWith('/apis/');
}

/** Returns the Status object that Kubernetes clients expect in an error response. */
export function kubernetesStatusFor({ code, message, status }: ErrorFields): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: code, message, code: status };
}

interface ErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

/** Adds the routes of the discovery documents. They are public, because the API server reads them without a user. */
export function aggregatedRoutes(app: FastifyInstance): void {
  const documents: Readonly<Record<string, object>> = {
    [PREFIX]: {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: GROUP_VERSION,
      // kubectl fails if the list is empty. The list contains only `me`, because an entry `services` would hide the Services of Kubernetes
      // in kubectl.
      resources: [{ name: 'me', singularName: 'me', namespaced: false, kind: 'Me', verbs: ['get'] }],
    },
    // The API server merges the OpenAPI documents of all APIs. If these two documents were missing, the API server would retry and log
    // errors.
    '/openapi/v2': { swagger: '2.0', info: { title: 'Weir console', version: 'v1' }, paths: {} },
    '/openapi/v3': { paths: {} },
  };
  for (const [path, document] of Object.entries(documents)) {
    app.get(path, { config: { access: 'public' }, schema: { hide: true } }, async () => document);
  }
}
