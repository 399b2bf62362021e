// Finds the tenant's page for an answer of Weir itself.
import type { ErrorPagesEntry } from '@weir/model/data-plane';
import type { AnswerFormat } from './answer-format.ts';
import { fieldLine } from './byte-writer.ts';
import { CONTENT_TYPES, type ErrorPage } from './error-answer.ts';

/** The formats of pages. Answers to gRPC requests have no body. */
type PageFormat = Exclude<AnswerFormat, 'grpc'>;

const EXTENSIONS: Readonly<Record<PageFormat, string>> = { html: '.html', json: '.json', text: '.txt' };

/** The pages that were used so far, by name. They are dropped together with the routes of the entry. */
const pagesByEntry = new WeakMap<ErrorPagesEntry, Map<string, ErrorPage>>();

/**
 * Returns the page in the format that the client prefers: the page for the status, for its class, or for all. Undefined if
 * there is none, because another format would be of no use to the client.
 */
export function errorPageFor(
  entry: ErrorPagesEntry | undefined,
  status: number,
  format: AnswerFormat,
): ErrorPage | undefined {
  if (entry === undefined || format === 'grpc') return undefined;
  for (const stem of [status, `${Math.floor(status / 100)}xx`, 'default']) {
    const name = `${stem}${EXTENSIONS[format]}`;
    const text = entry.pages[name];
    if (text !== undefined) return encodedPage(entry, { name, text, format });
  }
  return undefined;
}

function encodedPage(
  entry: ErrorPagesEntry,
  { name, text, format }: { readonly name: string; readonly text: string; readonly format: PageFormat },
): ErrorPage {
  const known = pagesByEntry.get(entry) ?? new Map<string, ErrorPage>();
  pagesByEntry.set(entry, known);
  const page = known.get(name) ?? {
    body: new TextEncoder().encode(text),
    contentTypeLine: fieldLine('Content-Type', CONTENT_TYPES[format]),
  };
  known.set(name, page);
  return page;
}
