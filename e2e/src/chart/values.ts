import { isMap, isScalar, type Pair, parse, parseDocument, type YAMLMap } from 'yaml';

/** A value, or a section of values, in values.yaml. */
export interface ChartValue extends ValueComment {
  /** The path of the value, such as `controller.sharedPorts`. */
  readonly path: string;
  readonly key: string;
  readonly default: unknown;
  /** The values of a section with fixed keys; undefined for other values. */
  readonly children?: readonly ChartValue[];
}

/** Returns the values of values.yaml in file order. If there are mistakes, throws one error that lists all of them. */
export function parseValues(text: string): readonly ChartValue[] {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw error;
  if (!isMap(document.contents)) return [];
  const errors: string[] = [];
  const values = parseChildren(document.contents, { prefix: '', errors });
  if (errors.length > 0) throw new Error(`values.yaml: ${errors.join('; ')}`);
  return values;
}

interface ParsePosition {
  readonly prefix: string;
  readonly errors: string[];
}

function parseChildren(map: YAMLMap, position: ParsePosition): readonly ChartValue[] {
  // Passes the map's comment to the first value, because the YAML library assigns the comment of the first key to the map.
  return map.items.map((pair, index) => parseValue(pair, index === 0 ? map.commentBefore : undefined, position));
}

function parseValue(pair: Pair, first: string | null | undefined, { prefix, errors }: ParsePosition): ChartValue {
  const { key: name, value } = pair;
  if (!isScalar(name)) throw new Error('values.yaml: expected a string as key');
  const key = String(name.value);
  const path = `${prefix}${key}`;
  const { comment = undefined } = isScalar(value) ? value : {};
  if (comment) errors.push(`${path}: move the comment above the key`);
  const parsed = parseValueComment(first ?? name.commentBefore ?? '');
  const own = { ...parsed, path, key, default: toPlainValue(value) };
  const section = isMap(value) && value.items.length > 0 && !('additionalProperties' in parsed.schema);
  if (!section && parsed.text === '') errors.push(`${path}: add a comment that describes the value`);
  return section ? { ...own, children: parseChildren(value, { prefix: `${path}.`, errors }) } : own;
}

function toPlainValue(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
    ? value.toJSON()
    : value;
}

/** A permitted value and its effect. */
export interface Choice {
  readonly word: string;
  readonly meaning: string;
}

/** The comment above a value in values.yaml. */
export interface ValueComment {
  /** The description, with one paragraph per line. */
  readonly text: string;
  readonly choices: readonly Choice[];
  /** The parsed `@schema` line. Overrides the schema that is derived from the default value. */
  readonly schema: object;
}

const CHOICE = /^ {3,}(\S+) {2,}(\S.*)$/;
const CONTINUATION = /^ {5,}(\S.*)$/;
const SCHEMA = /^\s*@schema (.+)$/;

/**
 * Parses the comment above a value. The YAML library returns the comment without `#`. If blank lines divide the comment, only the part
 * after the last blank line describes the value.
 */
export function parseValueComment(comment: string): ValueComment {
  const [own = ''] = comment.split('\n\n').slice(-1);
  const paragraphs: string[] = [''];
  const choices: { word: string; meaning: string }[] = [];
  let schema: object = {};
  for (const line of own.split('\n')) {
    const [, overlay] = SCHEMA.exec(line) ?? [];
    const [, word, meaning] = CHOICE.exec(line) ?? [];
    const [, further] = CONTINUATION.exec(line) ?? [];
    const last = choices.at(-1);
    if (overlay !== undefined) schema = schemaFromAnnotation(overlay);
    else if (word !== undefined && meaning !== undefined) choices.push({ word: word === '""' ? '' : word, meaning });
    else if (last !== undefined && further !== undefined) last.meaning += ` ${further}`;
    else if (line.trim() === '') paragraphs.push('');
    else paragraphs.push(`${paragraphs.pop()} ${line.trim()}`.trim());
  }
  return { text: paragraphs.filter((each) => each !== '').join('\n'), choices, schema };
}

function schemaFromAnnotation(overlay: string): object {
  if (overlay.startsWith('{')) return parse(overlay) as object;
  const named = NAMED_TYPES[overlay];
  if (named === undefined)
    throw new Error(
      `@schema ${overlay}: unknown type; expected a map or one of ${Object.keys(NAMED_TYPES).join(', ')}`,
    );
  return named;
}

// JSON Schemas of the types that comments of values.yaml may name. Patterns use the RE2 syntax, because helm evaluates them.
const PORT_SCHEMA = { type: 'integer', minimum: 1, maximum: 65_535 };

export const NAMED_TYPES: Readonly<Record<string, object>> = {
  /** A Kubernetes quantity: 100m, 128Mi, 2. */
  quantity: { type: ['string', 'number'], pattern: '^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$' },
  /** A duration in Weir's syntax: 500ms, 30s, 1h30m. */
  duration: { type: 'string', pattern: '^([0-9]+(d|h|m|s|ms))+$' },
  /** The name of a Secret (RFC 1123 subdomain), or empty. */
  'secret-name': { type: 'string', pattern: '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$', maxLength: 253 },
  port: PORT_SCHEMA,
  ports: { type: 'array', items: PORT_SCHEMA, uniqueItems: true },
  'port-ranges': {
    type: 'array',
    items: { type: ['integer', 'string'], pattern: '^[0-9]{1,5}(-[0-9]{1,5})?$', minimum: 1, maximum: 65_535 },
    uniqueItems: true,
  },
  cidrs: { type: 'array', items: { type: 'string', pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$' }, uniqueItems: true },
  objects: { type: 'array', items: { type: 'object' } },
  map: { type: 'object', additionalProperties: true },
  /** The resource requirements of a container. */
  resources: {
    type: 'object',
    properties: { requests: { type: 'object' }, limits: { type: 'object' }, claims: { type: 'array' } },
    additionalProperties: false,
  },
};
