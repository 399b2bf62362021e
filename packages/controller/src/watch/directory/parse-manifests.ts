// Parses the text of a file into objects with line numbers. Supports multi-document YAML, JSON, and kinds that end with `List`. An
// unreadable document does not affect the other documents.
import { type Document, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';
import { isObject } from '../../parse/fields.ts';

export type Manifest =
  | { readonly kind: 'object'; readonly line: number; readonly raw: Readonly<Record<string, unknown>> }
  | { readonly kind: 'unreadable'; readonly line: number; readonly message: string };

export function parseManifests(text: string): Manifest[] {
  const lines = new LineCounter();
  try {
    // `uniqueKeys` is off, because the option compares each key of a mapping with all other keys; `offsetOfDuplicateKey` takes linear time.
    // `logLevel` suppresses a warning on stderr about mappings as keys, because the warning quotes the file and may show a private key.
    const options = {
      lineCounter: lines,
      merge: true,
      prettyErrors: false,
      uniqueKeys: false,
      logLevel: 'error',
    } as const;
    const documents = parseAllDocuments(text, options);
    return [...documents].flatMap((document) => parseDocument(document, lines));
  } catch (error) {
    // The parser recurses, so deep nesting exhausts the stack.
    return [{ kind: 'unreadable', line: 1, message: unreadableMessage(error) }];
  }
}

function parseDocument(document: Document.Parsed, lines: LineCounter): Manifest[] {
  const mistake = document.errors[0];
  if (mistake !== undefined) {
    return [
      {
        kind: 'unreadable',
        line: lineAt(lines, mistake.pos[0]),
        message: `is not valid YAML: ${withoutQuotedSource(mistake.message)}`,
      },
    ];
  }
  const line = lineAt(lines, document.contents?.range?.[0] ?? 0);
  const duplicateOffset = offsetOfDuplicateKey(document);
  if (duplicateOffset !== undefined) {
    const message = 'is not valid YAML: Map keys must be unique';
    return [{ kind: 'unreadable', line: lineAt(lines, duplicateOffset), message }];
  }
  try {
    return expand(document.toJS(), { line, itemLine: (index) => itemLine(document, index, lines) ?? line });
  } catch (error) {
    // The document has too many aliases (a "billion laughs" attack).
    return [{ kind: 'unreadable', line, message: unreadableMessage(error) }];
  }
}

function unreadableMessage(error: unknown): string {
  return `cannot be read: ${withoutQuotedSource(error instanceof Error ? error.message : String(error))}`;
}

/**
 * Removes the source that the parser quotes at the end of its message, because the source may be a private key. The problem names the
 * line instead.
 */
function withoutQuotedSource(message: string): string {
  return message.replace(/(?::| directive) .*$/s, '');
}

/** Returns the offset of the first key that repeats an earlier key of its mapping; undefined if all keys are unique. */
function offsetOfDuplicateKey(document: Document.Parsed): number | undefined {
  let offset: number | undefined;
  visit(document, {
    Map(_, { items }) {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) {
          offset = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        keys.add(key.value);
      }
      return undefined;
    },
  });
  return offset;
}

interface Lines {
  readonly line: number;
  itemLine(index: number): number;
}

function expand(value: unknown, { line, itemLine }: Lines): Manifest[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object' || Array.isArray(value)) {
    return [
      { kind: 'unreadable', line, message: 'is not a Kubernetes object; use a mapping with apiVersion and kind' },
    ];
  }
  const raw = value as Record<string, unknown>;
  if (typeof raw.apiVersion !== 'string' || typeof raw.kind !== 'string') {
    const missing = ['apiVersion', 'kind'].filter((name) => typeof raw[name] !== 'string').join(' and ');
    return [{ kind: 'unreadable', line, message: `is not a Kubernetes object: it needs ${missing}, as text` }];
  }
  if (!raw.kind.endsWith('List') || !Array.isArray(raw.items)) return [{ kind: 'object', line, raw }];
  const defaults = itemDefaults(raw.apiVersion, raw.kind);
  return raw.items.flatMap((item: unknown, index) => {
    const named = isObject(item) ? { ...defaults, ...item } : item;
    return expand(named ?? '', { line: itemLine(index), itemLine: () => itemLine(index) });
  });
}

/**
 * Returns the fields that the items of a list inherit. The items of a `ServiceList` from an API server have no `apiVersion` and no
 * `kind`, while each item of a `List` must have them.
 */
function itemDefaults(apiVersion: string, kind: string): Record<string, string> {
  return kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
}

function itemLine(document: Document.Parsed, index: number, lines: LineCounter): number | undefined {
  const items = isMap(document.contents) ? document.contents.get('items', true) : undefined;
  const range = isSeq(items) ? (items.items[index] as { range?: [number] } | undefined)?.range : undefined;
  return range === undefined ? undefined : lineAt(lines, range[0]);
}

function lineAt(lines: LineCounter, offset: number): number {
  return Math.max(1, lines.linePos(offset).line);
}
