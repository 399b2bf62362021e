import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type FakePackage = {
  readonly name: string;
  readonly depends?: string;
  readonly files: Readonly<Record<string, string>>;
};

/**
 * Creates a Debian repository in a folder. Returns an environment in which apt uses only this repository, no network and
 * no installed package. The files of
 * a package in a folder `bin` are executable.
 */
export function debianRepository(folder: string, packages: readonly FakePackage[]): NodeJS.ProcessEnv {
  const index = packages.map((each) => addPackage(folder, each));
  writeFileSync(join(folder, 'Packages'), index.join('\n'));
  writeFileSync(join(folder, 'sources.list'), `deb [trusted=yes] file:${folder} ./\n`);
  // apt must find the packages of this repository only, not the packages that are installed on this machine.
  writeFileSync(join(folder, 'status'), '');
  const settings = join(folder, 'apt.conf');
  writeFileSync(
    settings,
    `Dir::Etc::sourcelist "${folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::status "${folder}/status";
`,
  );
  return { APT_CONFIG: settings };
}

const dpkgDeb = 'dpkg-deb';

function addPackage(folder: string, { name, depends, files }: FakePackage): string {
  const tree = join(folder, name);
  const control = [
    `Package: ${name}`,
    'Version: 9.9-1',
    'Architecture: all',
    'Maintainer: Nobody <nobody@example.test>',
    'Description: made by a test',
    ...(depends ? [`Depends: ${depends}`] : []),
  ].join('\n');
  for (const [path, text] of Object.entries({ ...files, 'DEBIAN/control': `${control}\n` })) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
    if (path.includes('bin/')) chmodSync(join(tree, path), 0o755);
  }
  const archive = join(folder, `${name}.deb`);
  execFileSync(dpkgDeb, ['--root-owner-group', '--build', tree, archive], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const bytes = readFileSync(archive);
  const digest = createHash('sha256').update(bytes).digest('hex');
  return `${control}\nFilename: ./${name}.deb\nSize: ${bytes.length}\nSHA256: ${digest}\n`;
}
