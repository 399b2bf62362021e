import type { ChartValue } from './values-tree.ts';

/**
 * The JSON Schema that helm checks values by: draft 7, which every helm 3 and 4 knows. Beside the values there are `global`, which helm
 * hands to every chart, and a section for each chart that this one depends on.
 */
export function valuesSchema(values: readonly ChartValue[], dependencies: readonly string[]): object {
  const foreign = ['global', ...dependencies].map((each) => [each, { type: 'object' }]);
  return { $schema: 'http://json-schema.org/draft-07/schema#', ...objectSchema(values, Object.fromEntries(foreign)) };
}

function objectSchema(values: readonly ChartValue[], further: object = {}): object {
  const properties = Object.fromEntries(values.map((each) => [each.key, valueSchema(each)]));
  return { type: 'object', properties: { ...properties, ...further }, additionalProperties: false };
}

function valueSchema({ text, choices, schema, children, path, default: value }: ChartValue): object {
  const description = text === '' ? {} : { description: text };
  if (children !== undefined) return { ...description, ...objectSchema(children), ...schema };
  const words = choices.length === 0 ? {} : { enum: choices.map(({ word }) => word) };
  const overlaid = { ...description, ...schemaTypeOf(value), ...words, ...schema };
  if (!('type' in overlaid || 'anyOf' in overlaid || 'enum' in overlaid))
    throw new Error(`values.yaml: ${path}: nothing says its type; add @schema`);
  return overlaid;
}

function schemaTypeOf(value: unknown): object {
  if (Array.isArray(value)) return { type: 'array', items: { type: 'string' } };
  switch (typeof value) {
    case 'string':
      return { type: 'string' };
    case 'boolean':
      return { type: 'boolean' };
    case 'number':
      return { type: 'integer', minimum: 0 };
    case 'object':
      return value === null ? {} : { type: 'object' };
    default:
      return {};
  }
}
