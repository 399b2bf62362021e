// docs/api.md, made of the definitions of the chart.
import { type CustomResource, customResources, type PrinterColumn } from './custom-resource.ts';
import { fieldTable } from './field-table.ts';

const PAGE_HEAD = `# Custom resources

<!-- Written by e2e/test/docs-api.test.ts from charts/weir-crds/definitions: UPDATE_GOLDEN=1 npm test -- docs-api -->

What Weir adds to the API of a cluster. The same is told by \`kubectl explain\`, such as \`kubectl explain tenantpolicy.spec.limits\`. All have
the category \`weir\`: \`kubectl get weir -A\` lists what there is. Kubernetes' own fields (\`metadata\`) are left out.

A field that the definitions do not know is dropped by the API server; \`kubectl\` refuses it before. A quantity is a number with
or without a suffix, as Kubernetes writes memory: \`100M\` is 100,000,000, \`10Ti\` 10 × 2⁴⁰. What a Service itself may ask for is in
[the tenant's guide](tenants.md#annotations), how policies and limits work in [Operating](operating.md#tenants-and-limits).`;

export function customResourcePage(): string {
  return [PAGE_HEAD, ...customResources().map(resourceSection)].join('\n\n');
}

function resourceSection({ group, version, kind, plural, scope, columns, schema }: CustomResource): string {
  const where = scope === 'Cluster' ? 'of the whole cluster' : 'of a namespace';
  const parts = Object.entries(schema.properties ?? {}).flatMap(([name, part]) => [
    `### ${kind}: ${name}`,
    ...(part.description === undefined ? [] : [part.description]),
    fieldTable(part, name),
    ...rulesText(part['x-kubernetes-validations']),
  ]);
  return [
    `## ${kind}`,
    schema.description ?? '',
    `\`${group}/${version}\`, ${where}; \`kubectl get ${plural}\` shows ${columns.map(columnText).join(', ')}.`,
    ...parts,
  ].join('\n\n');
}

function columnText({ name, jsonPath, priority = 0 }: PrinterColumn): string {
  return `${name} (\`${jsonPath.slice(1)}\`${priority > 0 ? ', with `-o wide`' : ''})`;
}

const rulesText = (rules: readonly { readonly message: string }[] = []): readonly string[] =>
  rules.length === 0 ? [] : [`Must hold: ${rules.map(({ message }) => message).join('; ')}.`];
