import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { parseValueComment, type ValueComment } from './value-comment.ts';

/** A value of values.yaml, or a section of them. */
export interface ChartValue extends ValueComment {
  /** Such as `controller.sharedPorts`. */
  readonly path: string;
  readonly key: string;
  readonly default: unknown;
  /** Of a map whose keys are these and no others; else absent. */
  readonly children?: readonly ChartValue[];
}

/** The values in the order of the file. Throws what is wrong with the file, all at once. */
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

function parseChildren(map: YAMLMap, place: ParsePosition): readonly ChartValue[] {
  // the library gives the comment of the first key to the map
  return map.items.map((pair, index) => parseValue(pair, index === 0 ? map.commentBefore : undefined, place));
}

function parseValue(pair: Pair, first: string | null | undefined, { prefix, errors }: ParsePosition): ChartValue {
  const { key: name, value } = pair;
  if (!isScalar(name)) throw new Error('values.yaml: a key is not a text');
  const key = String(name.value);
  const path = `${prefix}${key}`;
  const { comment = undefined } = isScalar(value) ? value : {};
  if (comment) errors.push(`${path}: a comment stands behind it instead of above it`);
  const parsed = parseValueComment(first ?? name.commentBefore ?? '');
  const own = { ...parsed, path, key, default: toPlainValue(value) };
  const section = isMap(value) && value.items.length > 0 && !('additionalProperties' in parsed.schema);
  if (!section && parsed.text === '') errors.push(`${path}: no comment says what it means`);
  return section ? { ...own, children: parseChildren(value, { prefix: `${path}.`, errors }) } : own;
}

function toPlainValue(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
    ? value.toJSON()
    : value;
}
