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
