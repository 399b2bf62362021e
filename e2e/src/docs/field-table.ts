// The fields below a schema as a table: one line for each, with its path, what it may be, and what it means.
import type { JsonSchema } from './custom-resource.ts';

/** Markdown. Throws when a field does not say what it means. */
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
    const own = `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const below = child.items === undefined ? fieldsBelow(child, own) : fieldsBelow(child.items, `${own}[]`);
    return [{ path: own, schema: child, isRequired }, ...below];
  });
}

function fieldRow({ path, schema, isRequired }: Field): string {
  const { description } = schema;
  if (description === undefined) throw new Error(`${path}: no description says what it means`);
  const rules = [...ruleMessages(schema), ...ruleMessages(schema.items)];
  const fallback = schema.default === undefined ? [] : [`Default: ${codeSpan(schema.default)}.`];
  const must = rules.length === 0 ? [] : [`Must hold: ${rules.join('; ')}.`];
  const meaning = [description, ...fallback, ...must].join(' ');
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

/** Whole numbers and text beside each other: quantities, shares in per cent, and ports with ranges of them. */
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
