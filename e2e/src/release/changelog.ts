import { type Bump, type Changeset, highestBump } from './fragment.ts';

export interface Release {
  readonly version: string;
  /** Such as 2026-12-01. */
  readonly date: string;
  readonly changesets: readonly Changeset[];
}

const HEADINGS: Readonly<Record<Bump, string>> = {
  major: 'What breaks',
  minor: 'What is new',
  patch: 'What is mended',
};

/** CHANGELOG.md with the release above those before it. Each fragment stands there once, whatever packages it names. */
export function addRelease(changelog: string, release: Release): string {
  const [head = '', ...earlier] = changelog.split(/^(?=## )/m);
  return [`${head.trimEnd()}\n\n`, `${sectionFor(release).trimEnd()}\n\n`, ...earlier].join('').trimEnd().concat('\n');
}

function sectionFor({ version, date, changesets }: Release): string {
  const kinds = Object.entries(HEADINGS).map(([bump, heading]) => {
    const entries = changesets.filter((each) => highestBump(each) === bump).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return entries.length === 0 ? '' : `### ${heading}\n\n${entries.map(entryFor).join('\n')}\n\n`;
  });
  return `## ${version} (${date})\n\n${kinds.join('')}`;
}

const entryFor = ({ summary }: Changeset): string =>
  `- ${summary
    .trim()
    .split(/\s*\n\s*/)
    .join('\n  ')}`;
