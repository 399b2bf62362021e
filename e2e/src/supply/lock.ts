import { readFileSync } from 'node:fs';

/** An entry of package-lock.json below node_modules. */
export interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  /** Only tests and development need it. */
  readonly dev?: boolean;
}

const LOCK_FILE = new URL('../../../package-lock.json', import.meta.url);

/** What is installed from registries, by its place such as node_modules/pino; packages of ours are left out. */
export function lockedPackages(): ReadonlyMap<string, LockedPackage> {
  const { packages } = JSON.parse(readFileSync(LOCK_FILE, 'utf8')) as {
    packages: Record<string, LockedPackage & { readonly link?: boolean }>;
  };
  return new Map(Object.entries(packages).filter(([place, { link }]) => place.includes('node_modules/') && !link));
}
