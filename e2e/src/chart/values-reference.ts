import type { ChartValue } from './values.ts';

/**
 * Returns the JSON Schema for the chart's values (draft 7, which helm 3 and 4 support). The schema also allows a section for
 * each dependency, and `global`, which helm passes to every chart, unless the values define it.
 */
export function valuesSchema(values: readonly ChartValue[], dependencies: readonly string[]): object {
  const others = values.some(({ key }) => key === 'global') ? dependencies : ['global', ...dependencies];
  const otherSections = others.map((each) => [each, { type: 'object' }]);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...objectSchema(values, Object.fromEntries(otherSections)),
  };
}

function objectSchema(values: readonly ChartValue[], otherProperties: object = {}): object {
  const properties = Object.fromEntries(values.map((each) => [each.key, valueSchema(each)]));
  return { type: 'object', properties: { ...properties, ...otherProperties }, additionalProperties: false };
}

function valueSchema({ text, choices, schema, children, path, default: value }: ChartValue): object {
  const description = text === '' ? {} : { description: text };
  if (children !== undefined) return { ...description, ...objectSchema(children), ...schema };
  const words = choices.length === 0 ? {} : { enum: choices.map(({ word }) => word) };
  const merged = { ...description, ...schemaTypeOf(value), ...words, ...schema };
  if (!('type' in merged || 'anyOf' in merged || 'enum' in merged))
    throw new Error(`values.yaml: ${path}: cannot derive the type from the default; add @schema`);
  return merged;
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

/** Returns Markdown: a table of top-level values, then a heading and a table for each top-level section. */
export function valuesTables(values: readonly ChartValue[]): string {
  const topLevel = values.filter(({ children }) => children === undefined);
  const sections = values.flatMap((each) =>
    each.children === undefined
      ? []
      : [`### ${each.key}`, ...paragraphs(each), markdownTable(flattenValues(each.children))],
  );
  return [...(topLevel.length === 0 ? [] : [markdownTable(topLevel)]), ...sections].join('\n\n');
}

const flattenValues = (values: readonly ChartValue[]): readonly ChartValue[] =>
  values.flatMap((each) => (each.children === undefined ? [each] : [each, ...flattenValues(each.children)]));

const paragraphs = ({ text }: ChartValue): readonly string[] => (text === '' ? [] : text.split('\n'));

function markdownTable(values: readonly ChartValue[]): string {
  // Omits a nested section without a description.
  const rows = values.filter(({ text, children }) => children === undefined || text !== '').map(tableRow);
  return ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

function tableRow(value: ChartValue): string {
  const defaultCell = value.children === undefined ? codeSpan(defaultText(value.default)) : '';
  const choices = value.choices.map(({ word, meaning }) => `${codeSpan(word === '' ? '""' : word)}: ${meaning}`);
  const meaning = [...paragraphs(value), ...choices].join('<br>').replaceAll('|', '\\|');
  return `| \`${value.path}\` | ${defaultCell} | ${meaning} |`;
}

function defaultText(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

const codeSpan = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
