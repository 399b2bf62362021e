import { packageVersion } from '@weir/runtime';

export function version(): string {
  return packageVersion(import.meta.url);
}
