// The rights that the chart gives to an account, and those that were used.
import type { AuditedRequest } from '@weir/testkit';
import { parseAllDocuments } from 'yaml';
import { chartFile, WEIR_CHART } from './chart-folder.ts';

interface Role {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** Each as `VERB RESOURCE.GROUP`. */
export function grantedPermissions(component: string): readonly string[] {
  const roles = parseAllDocuments(chartFile(WEIR_CHART, `rights/${component}.yaml`)).map((each) => each.toJS() as Role);
  return roles
    .flatMap(({ rules }) => rules)
    .flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => permissionText({ verb, group, resource }))),
      ),
    );
}

export function permissionText({ verb, group, resource }: Omit<AuditedRequest, 'account'>): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
}
