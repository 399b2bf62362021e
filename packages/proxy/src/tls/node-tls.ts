import type * as tls from 'node:tls';

let loaded: typeof tls | undefined;

/** Loaded for the first client whose TLS ends here: in most workers none ever comes, and it takes megabytes and tens of milliseconds. */
export function nodeTls(): typeof tls {
  loaded ??= process.getBuiltinModule('node:tls');
  return loaded;
}
