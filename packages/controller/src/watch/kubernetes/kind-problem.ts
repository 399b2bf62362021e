import type { Problem } from '@weir/model';
import type { ApiError } from '../../kubernetes/api-error.ts';

interface Kind {
  readonly resource: string;
  readonly isNeeded: boolean;
}

/** What an operator is told of a kind that cannot be read. An API server that is away is told of by the process, not here. */
export function problemFor({ resource, isNeeded }: Kind, error: ApiError): readonly Problem[] {
  const meanwhile = isNeeded
    ? 'until then nothing new is served, and what is served stays as it was last known'
    : 'until then everything else is served as if there were none';
  switch (error.code) {
    case 'NOT_FOUND':
      return [
        problem('MissingCustomResource', resource, [
          `the API server does not know ${resource}; ${meanwhile}.`,
          isNeeded
            ? 'Weir needs Kubernetes 1.30 or later: kubectl version'
            : 'Install the custom resources of Weir: kubectl apply -f charts/weir/templates/crds/',
        ]),
      ];
    case 'FORBIDDEN':
    case 'UNAUTHORIZED':
      return [
        problem('Forbidden', resource, [
          `${error.message}; ${meanwhile}.`,
          `The controller needs get, list and watch, as kubectl apply -f charts/weir/templates/controller/role.yaml grants; to see what it has: kubectl auth can-i list ${resource} --as=system:serviceaccount:NAMESPACE:weir-controller`,
        ]),
      ];
    case 'REFUSED':
      return [
        problem('Forbidden', resource, [`the API server refuses to list ${resource}: ${error.message}; ${meanwhile}`]),
      ];
    default:
      return [];
  }
}

function problem(code: 'MissingCustomResource' | 'Forbidden', subject: string, sentences: readonly string[]): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: true, message: sentences.join(' ') });
}
