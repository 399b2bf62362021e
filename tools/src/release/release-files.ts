import { parseDocument, YAMLMap, YAMLSeq } from 'yaml';

export interface Release {
  readonly version: string;
  /** Date such as 2026-12-01. */
  readonly date: string;
  readonly changesets: readonly Changeset[];
}

const HEADINGS: Readonly<Record<Bump, string>> = {
  major: 'Breaking changes',
  minor: 'Features',
  patch: 'Fixes',
};

/** Returns CHANGELOG.md with the release above earlier releases. A fragment that names several packages appears only once. */
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

/** A fragment of .changeset, in the format of `changeset status --output`. */
export interface Changeset {
  readonly id: string;
  readonly summary: string;
  readonly releases: readonly { readonly name: string; readonly type: Bump | 'none' }[];
}

export type Bump = 'major' | 'minor' | 'patch';
const BUMPS: readonly Bump[] = ['major', 'minor', 'patch'];

/** Returns the highest of the bumps in a fragment, or undefined if the fragment bumps no package. */
export function highestBump({ releases }: Changeset): Bump | undefined {
  return BUMPS.find((bump) => releases.some(({ type }) => type === bump));
}

// The following functions set the version in the files that changesets does not update: charts, docs and the lock file.

/** Sets the version and appVersion of a Chart.yaml, and the version of its dependencies on local charts. */
export function setChartVersion(chart: string, version: string): string {
  const document = parseDocument(chart);
  document.set('version', version);
  document.set('appVersion', version);
  const dependencies = document.get('dependencies');
  for (const each of dependencies instanceof YAMLSeq ? dependencies.items : [])
    if (each instanceof YAMLMap && String(each.get('repository') ?? '').startsWith('file:'))
      each.set('version', version);
  return document.toString({ lineWidth: 0, singleQuote: true });
}

const IMAGE_REFERENCE = /(ghcr\.io\/weir-dev\/weir-[a-z]+):[\w.+-]*\w/g;

/** Sets the version of Weir's images in a page or manifest of the docs. */
export function setImageVersions(text: string, version: string): string {
  return text.replace(IMAGE_REFERENCE, `$1:${version}`);
}

interface PackageLock {
  readonly packages: Record<string, { version?: string }>;
}

/** Sets the version of Weir's packages in package-lock.json, which contains a copy of the version of each package.json. */
export function setLockVersions(
  lock: string,
  { version, folders }: { version: string; folders: readonly string[] },
): string {
  const content = JSON.parse(lock) as PackageLock;
  for (const folder of folders) {
    const entry = content.packages[folder];
    if (entry === undefined) throw new Error(`package-lock.json has no entry for ${folder}: run npm install`);
    entry.version = version;
  }
  return `${JSON.stringify(content, null, 2)}\n`;
}
