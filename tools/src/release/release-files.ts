import { parseDocument, YAMLMap, YAMLSeq } from 'yaml';

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

/** A file of .changeset, as `changeset status --output` tells it. */
export interface Changeset {
  readonly id: string;
  readonly summary: string;
  readonly releases: readonly { readonly name: string; readonly type: Bump | 'none' }[];
}

export type Bump = 'major' | 'minor' | 'patch';
const BUMPS: readonly Bump[] = ['major', 'minor', 'patch'];

/** The gravest of what a fragment says of the packages that it names; undefined when none of them is released for it. */
export function highestBump({ releases }: Changeset): Bump | undefined {
  return BUMPS.find((bump) => releases.some(({ type }) => type === bump));
}

// The files that say the version of the product beside the package.json that changesets writes.

/** Chart.yaml with the version of the product as its own, as that of what it installs, and as that of the charts of ours in it. */
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

/** A page or manifest of the docs, whose readers get the images of this version. */
export function setImageVersions(text: string, version: string): string {
  return text.replace(IMAGE_REFERENCE, `$1:${version}`);
}

interface PackageLock {
  readonly packages: Record<string, { version?: string }>;
}

/** package-lock.json, whose entries of our own packages repeat their versions. */
export function setLockVersions(
  lock: string,
  { version, folders }: { version: string; folders: readonly string[] },
): string {
  const content = JSON.parse(lock) as PackageLock;
  for (const folder of folders) {
    const entry = content.packages[folder];
    if (entry === undefined) throw new Error(`package-lock.json has no ${folder}; run npm install`);
    entry.version = version;
  }
  return `${JSON.stringify(content, null, 2)}\n`;
}
