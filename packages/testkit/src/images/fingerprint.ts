import { createHash } from 'node:crypto';
import { buildContextFiles, readFromCheckout } from './context.ts';
import { imageNames } from './image-names.ts';
import { npmNodeBinary } from './node-program.ts';

/** Names what lies in the cache by all that went in: the same name, the same images. */
export function imagesFingerprint(): string {
  return digestOf(
    [baseImagesFingerprint(), JSON.stringify(imageNames())],
    [...buildContextFiles(), ...recipeFiles('build-images')],
  );
}

/** Of what does not change with Weir: the system, Node, Redis, and the way in which they are put together. */
export function baseImagesFingerprint(): string {
  const files = [...recipeFiles('build-base'), 'packages/testkit/images/Dockerfile.redis'];
  return digestOf([process.arch, npmNodeBinary().version], files);
}

function recipeFiles(name: string): string[] {
  return [`packages/testkit/src/images/${name}.ts`, 'packages/testkit/bin/image-workshop'];
}

function digestOf(words: readonly string[], paths: readonly string[]): string {
  const hash = createHash('sha256').update(words.join('\0'));
  for (const path of paths) hash.update(`\0${path}\0`).update(readFromCheckout(path));
  return hash.digest('hex').slice(0, 16);
}
