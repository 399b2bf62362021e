import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

// Generates docs/api.md from the chart's CustomResourceDefinitions.

const PAGE_HEAD = `# Custom resources

<!-- Written by e2e/test/docs-custom-resources.test.ts from charts/weir-crds/definitions:
UPDATE_GOLDEN=1 npm test -- docs-custom-resources -->

This page describes Weir's custom resources. It is generated from their definitions, and
\`kubectl explain tenantpolicy.spec.limits\` prints the same text. All resources have the category \`weir\`, so
\`kubectl get weir -A\` lists them. This page omits the fields that all Kubernetes objects have (\`metadata\`).

If a manifest contains an unknown field, \`kubectl\` refuses the manifest. If another client sends an unknown field, the API
server drops the field. A quantity is a number with an optional suffix, in the Kubernetes notation for memory: \`100M\`
is 100,000,000, and \`10Ti\` is 10 × 2⁴⁰. [Annotations](annotations.md) lists the annotations of Services,
and [Tenants and limits](limits.md) explains policies.`;

export function customResourcePage(): string {
  return [PAGE_HEAD, ...customResources().map(resourceSection)].join('\n\n');
}

function resourceSection({ group, version, kind, plural, scope, columns, schema }: CustomResource): string {
  const where = scope === 'Cluster' ? 'cluster-scoped' : 'namespaced';
  const parts = Object.entries(schema.properties ?? {}).flatMap(([name, part]) => [
    `### ${kind}: ${name}`,
    ...(part.description === undefined ? [] : [wrapped(part.description)]),
    fieldTable(part, name),
    ...rulesText(part['x-kubernetes-validations']),
  ]);
  return [
    `## ${kind}`,
    wrapped(schema.description ?? ''),
    `API version \`${group}/${version}\`, ${where}. \`kubectl get ${plural}\` prints these columns:`,
    columns.map(columnText).join('\n'),
    ...parts,
  ].join('\n\n');
}

/** Breaks a text into lines of at most 120 characters, as all pages have. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{1,120})(?: +|$)/g, '$1\n').trimEnd();
}

function columnText({ name, jsonPath, priority = 0 }: PrinterColumn): string {
  return `- ${name}: \`${jsonPath.slice(1)}\`${priority > 0 ? ', only with `-o wide`' : ''}`;
}

const rulesText = (rules: readonly { readonly message: string }[] = []): readonly string[] =>
  rules.length === 0 ? [] : [`Must hold: ${rules.map(({ message }) => message).join('; ')}.`];

// The part of a CustomResourceDefinition that the page shows.

/** The part of an OpenAPI schema that the definitions use. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema;
  readonly items?: JsonSchema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-validations'?: readonly { readonly message: string }[];
}

export interface PrinterColumn {
  readonly name: string;
  readonly jsonPath: string;
  readonly description?: string;
  /** The column is shown only with `-o wide` if `priority` is above 0. */
  readonly priority?: number;
}

export interface CustomResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly columns: readonly PrinterColumn[];
  readonly schema: JsonSchema;
}

interface CustomResourceDefinition {
  readonly spec: {
    readonly group: string;
    readonly scope: CustomResource['scope'];
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly additionalPrinterColumns?: readonly PrinterColumn[];
      readonly schema: { readonly openAPIV3Schema: JsonSchema };
    }[];
  };
}

const DEFINITIONS_FOLDER = new URL('../../../charts/weir-crds/definitions/', import.meta.url);

/** Returns the custom resources in file order. A resource with several versions has one entry for each version. */
export function customResources(): readonly CustomResource[] {
  const files = readdirSync(DEFINITIONS_FOLDER).sort();
  return files.flatMap((file) =>
    resourcesOf(parse(readFileSync(new URL(file, DEFINITIONS_FOLDER), 'utf8')) as CustomResourceDefinition),
  );
}

function resourcesOf({ spec: { group, scope, names, versions } }: CustomResourceDefinition): readonly CustomResource[] {
  return versions.map(({ name: version, additionalPrinterColumns: columns = [], schema }) => ({
    group,
    version,
    kind: names.kind,
    plural: names.plural,
    scope,
    columns,
    schema: schema.openAPIV3Schema,
  }));
}

/**
 * Returns a Markdown table of all fields of a schema, including nested fields: path, type, meaning. Throws if a field has no description.
 */
export function fieldTable(schema: JsonSchema, path: string): string {
  const rows = fieldsBelow(schema, path).map(fieldRow);
  return ['| field | type | meaning |', '|---|---|---|', ...rows].join('\n');
}

interface Field {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

function fieldsBelow(schema: JsonSchema, path: string): readonly Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const fieldPath = `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const below =
      child.items === undefined ? fieldsBelow(child, fieldPath) : fieldsBelow(child.items, `${fieldPath}[]`);
    return [{ path: fieldPath, schema: child, isRequired }, ...below];
  });
}

function fieldRow({ path, schema, isRequired }: Field): string {
  const { description } = schema;
  if (description === undefined) throw new Error(`${path}: add a description`);
  const rules = [...ruleMessages(schema), ...ruleMessages(schema.items)];
  const defaultText = schema.default === undefined ? [] : [`Default: ${codeSpan(schema.default)}.`];
  const ruleText = rules.length === 0 ? [] : [`Must hold: ${rules.join('; ')}.`];
  const meaning = [description, ...defaultText, ...ruleText].join(' ');
  return `| \`${path}\`${isRequired ? ', required' : ''} | ${typeText(schema)} | ${escapeCell(meaning)} |`;
}

function ruleMessages(schema: JsonSchema | undefined): readonly string[] {
  return (schema?.['x-kubernetes-validations'] ?? []).map(({ message }) => message);
}

function typeText(schema: JsonSchema): string {
  const { type, items, maxItems, additionalProperties, format } = schema;
  if (items !== undefined) return `list of ${typeText(items)}${maxItems === undefined ? '' : `; up to ${maxItems}`}`;
  if (additionalProperties !== undefined) return `map to ${typeText(additionalProperties)}`;
  if (schema.enum !== undefined) return escapeCell(schema.enum.map(codeSpan).join(', '));
  if (schema['x-kubernetes-int-or-string']) return mixedText(schema);
  if (format === 'date-time') return 'time (RFC 3339)';
  if (type === 'string')
    return schema.maxLength === undefined ? 'string' : `string, up to ${schema.maxLength} characters`;
  return `${type}${boundsText(schema)}`;
}

/** Returns the type text of a field that accepts integers and strings: a quantity, a percentage, or a port or port range. */
function mixedText(schema: JsonSchema): string {
  const { pattern = '' } = schema;
  if (pattern.includes('[KMGTPE]i')) return pattern.includes('%') ? 'quantity or percentage' : 'quantity';
  return `integer${boundsText(schema)} or text`;
}

function boundsText({ minimum, maximum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`;
  return minimum === undefined ? '' : `, from ${minimum}`;
}

const codeSpan = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
const escapeCell = (text: string): string => text.replaceAll('|', '\\|');
