import type { ChartValue } from './values.ts';

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

/** Markdown: a table of what stands alone, then a heading and a table for each section of the first level. */
export function valuesTables(values: readonly ChartValue[]): string {
  const alone = values.filter(({ children }) => children === undefined);
  const sections = values.flatMap((each) =>
    each.children === undefined
      ? []
      : [`### ${each.key}`, ...paragraphs(each), markdownTable(flattenValues(each.children))],
  );
  return [...(alone.length === 0 ? [] : [markdownTable(alone)]), ...sections].join('\n\n');
}

const flattenValues = (values: readonly ChartValue[]): readonly ChartValue[] =>
  values.flatMap((each) => (each.children === undefined ? [each] : [each, ...flattenValues(each.children)]));

const paragraphs = ({ text }: ChartValue): readonly string[] => (text === '' ? [] : text.split('\n'));

function markdownTable(values: readonly ChartValue[]): string {
  // a section within a section has a line only for what is said of all of it
  const rows = values.filter(({ text, children }) => children === undefined || text !== '').map(tableRow);
  return ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

function tableRow(value: ChartValue): string {
  const shown = value.children === undefined ? codeSpan(defaultText(value.default)) : '';
  const choices = value.choices.map(({ word, meaning }) => `${codeSpan(word === '' ? '""' : word)}: ${meaning}`);
  const meaning = [...paragraphs(value), ...choices].join('<br>').replaceAll('|', '\\|');
  return `| \`${value.path}\` | ${shown} | ${meaning} |`;
}

function defaultText(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

const codeSpan = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
