// The text of a file to the objects in it: multi-document YAML, JSON, `List`. Each with its line, because that is where its author
// looks. A document that cannot be read hides none of the others.
import { type Document, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';

export type Manifest =
  | { readonly kind: 'object'; readonly line: number; readonly raw: Readonly<Record<string, unknown>> }
  | { readonly kind: 'unreadable'; readonly line: number; readonly message: string };

export function parseManifests(text: string): Manifest[] {
  const lines = new LineCounter();
  try {
    // The parser would compare each key of a mapping with all others; `doubleKey` does not.
    // By itself it warns on stderr of a mapping that is a key, with how that begins: perhaps a private key.
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
    // The parser recurses: nesting without end exhausts the stack.
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
        message: `is not valid YAML: ${withoutSource(mistake.message)}`,
      },
    ];
  }
  const line = lineAt(lines, document.contents?.range?.[0] ?? 0);
  const double = duplicateKeyOffset(document);
  if (double !== undefined) {
    const message = 'is not valid YAML: Map keys must be unique';
    return [{ kind: 'unreadable', line: lineAt(lines, double), message }];
  }
  try {
    return expand(document.toJS(), { line, itemLine: (index) => itemLine(document, index, lines) ?? line });
  } catch (error) {
    // Aliases that multiply without end.
    return [{ kind: 'unreadable', line, message: unreadableMessage(error) }];
  }
}

function unreadableMessage(error: unknown): string {
  return `cannot be read: ${withoutSource(error instanceof Error ? error.message : String(error))}`;
}

/** The parser's messages end with what it stumbled over. That may be a private key, and the line says where it is. */
function withoutSource(message: string): string {
  return message.replace(/(?::| directive) .*$/s, '');
}

/** Where a key stands that its mapping has already. */
function duplicateKeyOffset(document: Document.Parsed): number | undefined {
  let double: number | undefined;
  visit(document, {
    Map(_, { items }) {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) {
          double = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        keys.add(key.value);
      }
      return undefined;
    },
  });
  return double;
}

interface Lines {
  readonly line: number;
  itemLine(index: number): number;
}

function expand(value: unknown, { line, itemLine }: Lines): Manifest[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object' || Array.isArray(value)) {
    return [{ kind: 'unreadable', line, message: 'is no Kubernetes object; use a mapping with apiVersion and kind' }];
  }
  const raw = value as Record<string, unknown>;
  if (typeof raw.apiVersion !== 'string' || typeof raw.kind !== 'string') {
    const missing = ['apiVersion', 'kind'].filter((name) => typeof raw[name] !== 'string').join(' and ');
    return [{ kind: 'unreadable', line, message: `is no Kubernetes object: ${missing} missing, or no text` }];
  }
  if (!raw.kind.endsWith('List') || !Array.isArray(raw.items)) return [{ kind: 'object', line, raw }];
  const defaults = itemDefaults(raw.apiVersion, raw.kind);
  return raw.items.flatMap((item: unknown, index) => {
    const named = isPlain(item) ? { ...defaults, ...item } : item;
    return expand(named ?? '', { line: itemLine(index), itemLine: () => itemLine(index) });
  });
}

/** The items of a `ServiceList`, as the API itself answers, do not repeat their kind; those of a `List` must. */
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

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
