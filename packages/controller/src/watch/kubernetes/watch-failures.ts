import type { Problem } from '@weir/model';
import { errorMessage, type Logger } from '@weir/runtime';
import { isSingleObjectFailure, type KubeApiError } from '../../kubernetes/kube-api-error.ts';
import type { WatchedKind, WatchedKindOptions } from './watched-kinds.ts';

/** Logs each failure and each recovery only once, because several watches fail at the same time and retry for hours. */
export class WatchFailureLog {
  readonly #log: Logger;
  readonly #server: string;
  readonly #unreachable = new Set<string>();
  readonly #refused = new Map<string, string>();

  constructor(log: Logger, server: string) {
    this.#log = log;
    this.#server = server;
  }

  record(resource: string, error: KubeApiError | undefined): void {
    if (error?.code === 'AWAY' && !isSingleObjectFailure(error)) {
      if (this.#unreachable.size === 0) {
        const fields = { server: this.#server, reason: errorMessage(error) };
        this.#log.warn(
          fields,
          'the API server is unreachable; keeping the objects that were read before, and retrying',
        );
      }
      this.#unreachable.add(resource);
      return;
    }
    if (this.#unreachable.delete(resource) && this.#unreachable.size === 0) {
      this.#log.info({ server: this.#server }, 'the API server is reachable again');
    }
    const before = this.#refused.get(resource);
    if (error === undefined) {
      this.#refused.delete(resource);
      if (before !== undefined) this.#log.info({ resource }, 'the kind can be read again');
    } else {
      this.#refused.set(resource, error.message);
      if (before !== error.message)
        this.#log.warn({ resource, reason: errorMessage(error) }, 'failed to list and watch; retrying');
    }
  }
}

type UnreadableKind = Pick<
  WatchedKindOptions<WatchedKind>,
  'resource' | 'namespace' | 'objectName' | 'isWeirResource' | 'isOptional' | 'effectUntilReadable' | 'grantedBy'
>;

const DEFAULT_GRANTED_BY = 'helm upgrade grants (by hand: charts/weir/rights/controller.yaml)';

/**
 * Returns the problems for the operator about a kind that cannot be read. Returns no problem if the API server is unreachable,
 * because that failure is only logged.
 */
export function unreadableKindProblems(kind: UnreadableKind, error: KubeApiError): readonly Problem[] {
  const { resource, namespace, isWeirResource, isOptional, effectUntilReadable, grantedBy = DEFAULT_GRANTED_BY } = kind;
  const subject = kindSubject(kind);
  switch (error.code) {
    case 'NOT_FOUND':
      if (isOptional === true) return [];
      return [
        problem('MissingCustomResource', subject, [
          `the API server does not know ${resource}; until it does, ${isWeirResource ? 'Weir works as if there were no such objects' : effectUntilReadable}.`,
          isWeirResource
            ? 'Install the custom resources of Weir: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions'
            : 'Weir needs Kubernetes 1.30 or later: kubectl version',
        ]),
      ];
    case 'FORBIDDEN':
    case 'UNAUTHORIZED':
      return [
        problem('Forbidden', subject, [
          `${error.message}; until the controller can list ${resource}, ${effectUntilReadable}.`,
          `The controller needs list and watch, which ${grantedBy}; to see its permissions: kubectl auth can-i list ${resource}${namespace === undefined ? '' : ` -n ${namespace}`} --as=system:serviceaccount:NAMESPACE:weir-controller`,
        ]),
      ];
    case 'REFUSED':
      return [
        problem('Forbidden', subject, [
          `the API server refuses to list ${resource}: ${error.message}; until the controller can list ${resource}, ${effectUntilReadable}`,
        ]),
      ];
    default:
      return [];
  }
}

/** Returns the kind, or the only watched object of the kind, as it is written in a kubectl command. */
export function kindSubject({
  resource,
  namespace,
  objectName,
}: Pick<UnreadableKind, 'resource' | 'namespace' | 'objectName'>): string {
  const object = objectName === undefined ? resource : `${resource} ${objectName}`;
  return namespace === undefined ? object : `${object} -n ${namespace}`;
}

function problem(code: 'MissingCustomResource' | 'Forbidden', subject: string, sentences: readonly string[]): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: true, message: sentences.join(' ') });
}
