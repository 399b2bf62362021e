/** The part of CycloneDX 1.6 that `billOfMaterials` writes. */
export type BillOfMaterials = {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.6';
  readonly version: 1;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
};

export type Component = {
  readonly type: 'container' | 'application' | 'platform' | 'library';
  readonly 'bom-ref'?: string;
  readonly name: string;
  readonly version?: string;
  readonly purl?: string;
  readonly cpe?: string;
  readonly licenses?: readonly License[];
  readonly components?: readonly Component[];
};

type License =
  | { readonly license: { readonly id: string } | { readonly name: string } }
  | { readonly expression: string };

export type ImageContents = {
  /** The npm packages of the image, including Weir's own packages, which have the scope @weir. */
  readonly npm: readonly { readonly name: string; readonly version: string; readonly license?: string | undefined }[];
  readonly debian: readonly { readonly name: string; readonly version: string; readonly architecture: string }[];
  /** Debian release, such as `12`. */
  readonly release: string;
  /** `process.versions` of the image's Node. */
  readonly node: Readonly<Record<string, string | undefined>>;
};

/** Lists the components of an image. Equal contents give an equal result, because components are sorted and no date is included. */
export function billOfMaterials(image: string, { npm, debian, release, node }: ImageContents): BillOfMaterials {
  const components = [
    nodeComponent(node),
    ...debian.map((each) => debianComponent(each, release)),
    ...npm.map(npmComponent),
  ];
  const byReference = new Map(components.map((each) => [each['bom-ref'] ?? each.name, each]));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'container', name: image } },
    components: [...byReference].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each),
  };
}

/** Keys of `process.versions` that are not libraries: Node itself, interfaces and data sets, which have no security advisories. */
const NOT_LIBRARIES: ReadonlySet<string> = new Set(['node', 'modules', 'napi', 'cldr', 'tz', 'unicode']);

function nodeComponent(versions: ImageContents['node']): Component {
  const version = versions.node ?? '';
  const libraries = Object.entries(versions).flatMap(([name, version]): Component[] =>
    NOT_LIBRARIES.has(name) || version === undefined ? [] : [{ type: 'library', name, version }],
  );
  const purl = `pkg:generic/node@${version}`;
  return {
    type: 'platform',
    'bom-ref': purl,
    name: 'node',
    version,
    purl,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    components: libraries,
  };
}

function debianComponent({ name, version, architecture }: ImageContents['debian'][number], release: string): Component {
  const query = `arch=${architecture}&distro=debian-${release}`;
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?${query}`;
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

function npmComponent({ name, version, license }: ImageContents['npm'][number]): Component {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const licenses = license === undefined ? {} : { licenses: [licenseFor(license)] };
  // Weir's packages have no package URL, because they are not in the npm registry, where others could publish packages of these names.
  if (name.startsWith('@weir/')) return { type: 'application', 'bom-ref': name, name, version, ...licenses };
  return { type: 'library', 'bom-ref': purl, name, version, purl, ...licenses };
}

function licenseFor(text: string): License {
  if (/\s(AND|OR|WITH)\s/.test(text)) return { expression: text };
  return { license: /^[\w.+-]+$/.test(text) ? { id: text } : { name: text } };
}
