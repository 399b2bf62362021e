// A separate entry point of the package, because a proxy's workers decrypt private keys and must not load the rest
// (pino, prom-client).
export { Sealer } from './sealer.ts';
export { Secret } from './secret.ts';
