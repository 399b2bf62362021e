// Whether what a page links to is there. Other sites are not asked: only whether the address is one.
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { anchorsIn, linksIn } from './markdown.ts';
import { readPage } from './pages.ts';

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
