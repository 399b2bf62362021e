import type * as tls from 'node:tls';

let loadedTls: typeof tls | undefined;

/** Loaded for the first client whose TLS ends here: in most workers none ever comes, and it takes megabytes and tens of milliseconds. */
export function loadNodeTls(): typeof tls {
  loadedTls ??= process.getBuiltinModule('node:tls');
  return loadedTls;
}
