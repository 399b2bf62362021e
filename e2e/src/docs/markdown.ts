import { existsSync, globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

// What of a Markdown page others can point at, and what it points at itself. As much of the format as our pages use.
export interface Link {
  readonly target: string;
  readonly line: number;
}

export interface CodeBlock {
  readonly text: string;
  /** Of the line after the fence. */
  readonly line: number;
}

/** Text without what stands in fences and code spans, line by line as before: code that looks like a link is none. */
function withoutCodeBlocks(page: string): string {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
  return page.replaceAll(/^( *)```.*?^\1```$/gms, blank).replaceAll(/<!--.*?-->/gs, blank);
}

/** `[text](target)`, `![text](target)`, and `src` and `href` of the little HTML that there is. */
export function linksIn(page: string): readonly Link[] {
  const text = withoutCodeBlocks(page).replaceAll(/`[^`\n]*`/g, '``');
  const found = text.matchAll(/\]\(([^)]*)\)|\b(?:src|srcset|href)="([^"]*)"/g);
  return [...found].map(({ index, 1: linked, 2: attribute }) => ({
    target: linked ?? attribute ?? '',
    line: text.slice(0, index).split('\n').length,
  }));
}

/** The anchors of a page as GitHub makes them of its headings: lower case, blanks to hyphens, punctuation away, `-1` for the second. */
export function anchorsIn(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutCodeBlocks(page).matchAll(/^#{1,6} +(.+?)(?: +#+)?$/gm)) {
    const text = heading.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = text.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The fenced blocks of a language, as a reader would copy them. */
export function fencedBlocks(page: string, language: string): readonly CodeBlock[] {
  return [...page.matchAll(/^( *)```(\w+)\n(.*?)^\1```$/gms)]
    .filter(([, , found]) => found === language)
    .map(({ index, 3: text = '' }) => ({ text, line: page.slice(0, index).split('\n').length + 1 }));
}

// Whether what a page links to is there. Other sites are not asked: only whether the address is one.
const ROOT_URL = new URL('../../../', import.meta.url);

/** One line for each link that leads nowhere, with page and line. */
export function brokenLinks(path: string, page: string): readonly string[] {
  return linksIn(page).flatMap(({ target, line }) => {
    const fault = linkError(path, target);
    return fault === undefined ? [] : [`${path}:${line}: (${target}) ${fault}`];
  });
}

function linkError(path: string, target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return externalLinkError(target);
  const [file = '', anchor] = target.split('#');
  const found = file === '' ? path : posix.join(posix.dirname(path), file);
  if (file.startsWith('/') || found.startsWith('..')) return 'leads out of the repository; use a relative path';
  if (!existsSync(fileURLToPath(new URL(found, ROOT_URL)))) return 'is not there';
  if (anchor === undefined) return undefined;
  if (!found.endsWith('.md')) return 'has an anchor, and is no Markdown page';
  return anchorsIn(readPage(found)).has(anchor) ? undefined : `${found} has no such heading`;
}

function externalLinkError(target: string): string | undefined {
  const url = URL.parse(target);
  if (url === null || /\s/.test(target)) return 'is no address';
  return url.protocol === 'https:' || url.protocol === 'mailto:' ? undefined : 'is not https';
}

// The Markdown pages of the repository that somebody reads. Fragments of the changelog are not: each becomes a line of it.
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE_PATTERNS = ['*.md', '.github/**/*.md', 'docs/**/*.md', 'bench/*.md', 'charts/*/*.md', 'packages/*/*.md'];

/** Paths from the root of the repository, with `/` between. */
export function listPages(): readonly string[] {
  return globSync(PAGE_PATTERNS, { cwd: ROOT })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
}

export function readPage(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8');
}
