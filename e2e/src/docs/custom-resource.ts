// What the reference of the custom resources is made of: a CustomResourceDefinition of the chart, as far as a reader needs it.
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** Of OpenAPI what the definitions use. */
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
  /** Above 0: with `-o wide` only. */
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

/** In the order of their kinds, one for each version. */
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
