// A separate entry point of the package. A proxy's workers decrypt private keys, but must not load the main entry point, because the main
// entry point loads pino.
export { Sealer } from './sealer.ts';
export { Secret } from './secret.ts';
