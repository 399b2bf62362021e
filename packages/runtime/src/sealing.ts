// A door of its own: the workers of a proxy open keys, and need nothing else of this package, least of all its loggers.
export { Sealer } from './sealer.ts';
export { Secret } from './secret.ts';
