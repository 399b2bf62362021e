// The files that say the version of the product beside the package.json that changesets writes.
import { parseDocument, YAMLMap, YAMLSeq } from 'yaml';

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
