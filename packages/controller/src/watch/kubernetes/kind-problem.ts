import type { Problem } from '@weir/model';
import type { KubeApiError } from '../../kubernetes/api-error.ts';
import type { WatchedKind, WatchedKindOptions } from './kinds.ts';

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
