import type { Problem } from '@weir/model';
import { errorMessage, type Logger } from '@weir/runtime';
import type { KubeApiError } from '../../kubernetes/kube-api-error.ts';
import type { WatchedKind, WatchedKindOptions } from './watched-kinds.ts';

/** Says once what cannot be read, and once that it can again: eight watches fail together, and retry for hours. */
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
    if (error?.code === 'AWAY') {
      if (this.#unreachable.size === 0) {
        const fields = { server: this.#server, reason: errorMessage(error) };
        this.#log.warn(fields, 'the API server is away; what is served stays as it is, and it is tried again');
      }
      this.#unreachable.add(resource);
      return;
    }
    if (this.#unreachable.delete(resource) && this.#unreachable.size === 0) {
      this.#log.info({ server: this.#server }, 'the API server is back');
    }
    const before = this.#refused.get(resource);
    if (error === undefined) {
      this.#refused.delete(resource);
      if (before !== undefined) this.#log.info({ resource }, 'can be read now');
    } else {
      this.#refused.set(resource, error.message);
      if (before !== error.message)
        this.#log.warn({ resource, reason: errorMessage(error) }, 'cannot be read; it is tried again');
    }
  }
}

type UnreadableKind = Pick<
  WatchedKindOptions<WatchedKind>,
  'resource' | 'namespace' | 'isOurs' | 'isNew' | 'meanwhile' | 'grant'
>;

const DEFAULT_GRANT = 'helm upgrade (by hand: charts/weir/rights/controller.yaml) grants';

/** What an operator is told of a kind that cannot be read. An API server that is away is told of by the process, not here. */
export function unreadableKindProblems(told: UnreadableKind, error: KubeApiError): readonly Problem[] {
  const { resource, namespace, isOurs, isNew, meanwhile, grant = DEFAULT_GRANT } = told;
  const subject = kindSubject(told);
  switch (error.code) {
    case 'NOT_FOUND':
      if (isNew === true) return [];
      return [
        problem('MissingCustomResource', subject, [
          `the API server does not know ${resource}; until then ${isOurs ? 'everything is served as if there were none' : meanwhile}.`,
          isOurs
            ? 'Install the custom resources of Weir: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions'
            : 'Weir needs Kubernetes 1.30 or later: kubectl version',
        ]),
      ];
    case 'FORBIDDEN':
    case 'UNAUTHORIZED':
      return [
        problem('Forbidden', subject, [
          `${error.message}; until then ${meanwhile}.`,
          `The controller needs list and watch, as ${grant}; to see what it has: kubectl auth can-i list ${resource}${namespace === undefined ? '' : ` -n ${namespace}`} --as=system:serviceaccount:NAMESPACE:weir-controller`,
        ]),
      ];
    case 'REFUSED':
      return [
        problem('Forbidden', subject, [
          `the API server refuses to list ${resource}: ${error.message}; until then ${meanwhile}`,
        ]),
      ];
    default:
      return [];
  }
}

/** What is read, as kubectl would be asked for it. */
export function kindSubject({ resource, namespace }: Pick<UnreadableKind, 'resource' | 'namespace'>): string {
  return namespace === undefined ? resource : `${resource} -n ${namespace}`;
}

function problem(code: 'MissingCustomResource' | 'Forbidden', subject: string, sentences: readonly string[]): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: true, message: sentences.join(' ') });
}
