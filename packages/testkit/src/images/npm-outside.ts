import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../programs/run.ts';

const NPM_SETTINGS = [
  'registry',
  'cafile',
  'proxy',
  'https-proxy',
  'noproxy',
  'strict-ssl',
  'cache',
  'userconfig',
] as const;

type NpmSettings = Readonly<Record<(typeof NPM_SETTINGS)[number], string | undefined>>;

/**
 * What lets npm inside a build reach what it reaches outside, as arguments of `buildah build`: mounted while the build runs, so that
 * neither registry, nor credential, nor certificate gets into a layer. What npm adds to its cache in there is not kept.
 */
export async function hostNpmVolumes(scratch: string): Promise<string[]> {
  const settings = await hostNpmSettings();
  const {
    cache,
    userconfig,
    cafile,
    registry,
    proxy,
    noproxy,
    'https-proxy': httpsProxy,
    'strict-ssl': strict,
  } = settings;
  const certificates = cafile ?? process.env.NODE_EXTRA_CA_CERTS ?? process.env.SSL_CERT_FILE;
  const inside = {
    registry,
    proxy,
    'https-proxy': httpsProxy,
    noproxy,
    'strict-ssl': strict,
    cafile: certificates === undefined ? undefined : '/run/certificates-outside.crt',
    cache: '/root/.npm',
    'prefer-offline': 'true',
    'update-notifier': 'false',
  };
  const lines = Object.entries(inside).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}\n`]));
  const file = join(scratch, 'npmrc');
  writeFileSync(file, lines.join(''));
  return [
    volumeArgument(file, '/usr/local/etc/npmrc', 'ro'),
    ...(userconfig && existsSync(userconfig) ? [volumeArgument(userconfig, '/root/.npmrc', 'ro')] : []),
    ...(certificates && existsSync(certificates)
      ? [volumeArgument(certificates, '/run/certificates-outside.crt', 'ro')]
      : []),
    ...(cache && existsSync(cache) ? [volumeArgument(cache, '/root/.npm', 'O')] : []),
  ];
}

/** Asked in a folder without a package.json: in a workspace npm refuses to tell. */
async function hostNpmSettings(): Promise<NpmSettings> {
  const text = await runCommand('npm', ['config', 'get', ...NPM_SETTINGS, '--logs-max=0'], { cwd: tmpdir() });
  const value = (key: string): string | undefined => {
    const found = new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]?.trim();
    return found === undefined || ['', 'null', 'undefined'].includes(found) ? undefined : found;
  };
  return Object.fromEntries(NPM_SETTINGS.map((key) => [key, value(key)])) as NpmSettings;
}

function volumeArgument(from: string, to: string, mode: 'ro' | 'O'): string {
  return `--volume=${from}:${to}:${mode}`;
}
