import { existsSync, globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

// Finds links, anchors and code blocks in the subset of Markdown that our pages use.

export interface Link {
  readonly target: string;
  readonly line: number;
}

export interface CodeBlock {
  readonly text: string;
  /** The number of the line after the opening fence. */
  readonly line: number;
}

/** Replaces code blocks and HTML comments by spaces, because links in code are not links. Keeps line breaks, and therefore line numbers. */
function withoutCodeBlocks(page: string): string {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
  return page.replaceAll(/^( *)```.*?^\1```$/gms, blank).replaceAll(/<!--.*?-->/gs, blank);
}

/** Returns the targets of `[text](target)`, of `![text](target)`, and of the HTML attributes `src`, `srcset` and `href`. */
export function linksIn(page: string): readonly Link[] {
  const text = withoutCodeBlocks(page).replaceAll(/`[^`\n]*`/g, '``');
  const found = text.matchAll(/\]\(([^)]*)\)|\b(?:src|srcset|href)="([^"]*)"/g);
  return [...found].map(({ index, 1: linked, 2: attribute }) => ({
    target: linked ?? attribute ?? '',
    line: text.slice(0, index).split('\n').length,
  }));
}

/**
 * Returns the heading anchors of a page as GitHub generates them: lower case, spaces as hyphens, no punctuation, and `-1`, `-2`, … for
 * duplicates.
 */
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

/** Returns the code blocks of a page in `language`. */
export function fencedBlocks(page: string, language: string): readonly CodeBlock[] {
  return [...page.matchAll(/^( *)```(\w+)\n(.*?)^\1```$/gms)]
    .filter(([, , found]) => found === language)
    .map(({ index, 3: text = '' }) => ({ text, line: page.slice(0, index).split('\n').length + 1 }));
}

// Checks that the targets of links exist. Checks only the syntax of links to other sites.

const ROOT_URL = new URL('../../../', import.meta.url);

/** Returns one text per broken link, with the path of the page and the line number. */
export function brokenLinks(path: string, page: string): readonly string[] {
  return linksIn(page).flatMap(({ target, line }) => {
    const error = linkError(path, target);
    return error === undefined ? [] : [`${path}:${line}: (${target}) ${error}`];
  });
}

function linkError(path: string, target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return externalLinkError(target);
  const [file = '', anchor] = target.split('#');
  const found = file === '' ? path : posix.join(posix.dirname(path), file);
  if (file.startsWith('/') || found.startsWith('..')) return 'points outside of the repository; use a relative path';
  if (!existsSync(fileURLToPath(new URL(found, ROOT_URL)))) return 'does not exist';
  if (anchor === undefined) return undefined;
  if (!found.endsWith('.md')) return 'has an anchor but is not a Markdown page';
  return anchorsIn(readPage(found)).has(anchor) ? undefined : `${found} has no such heading`;
}

function externalLinkError(target: string): string | undefined {
  const url = URL.parse(target);
  if (url === null || /\s/.test(target)) return 'is not a URL';
  return url.protocol === 'https:' || url.protocol === 'mailto:' ? undefined : 'is not https';
}

// Lists the Markdown pages that people read. Excludes changelog fragments, because their text becomes part of CHANGELOG.md.

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE_PATTERNS = ['*.md', '.github/**/*.md', 'docs/**/*.md', 'bench/*.md', 'charts/*/*.md', 'packages/*/*.md'];

/** Returns the paths of all pages relative to the root of the repository, with `/` as separator. */
export function listPages(): readonly string[] {
  return globSync(PAGE_PATTERNS, { cwd: ROOT })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
}

export function readPage(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8');
}
