import { packageVersion } from '@weir/runtime/command-line';

export function version(): string {
  return packageVersion(import.meta.url);
}
