// The Markdown pages of the repository that somebody reads. Fragments of the changelog are not: each becomes a line of it.
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

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
