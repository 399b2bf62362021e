import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { programPath } from '../programs/require-program.ts';
import { imageNames } from './image-names.ts';

export type WeirImages = {
  /** Paths of archives, which `ctr images import` takes. */
  readonly proxy: string;
  readonly controller: string;
  readonly redis: string;
  /** By which they are known once they are imported: those that the chart has by default. */
  readonly names: Readonly<Record<'proxy' | 'controller' | 'redis', string>>;
};

/** The images of Weir, built from the sources as they are. For tests that have called `requireProgram('images')`. */
export async function weirImages(): Promise<WeirImages> {
  const folder = programPath('weir-images');
  const now = new Date();
  utimesSync(folder, now, now);
  const archive = (name: string): string => join(folder, `${name}.tar`);
  return {
    proxy: archive('proxy'),
    controller: archive('controller'),
    redis: archive('redis'),
    names: imageNames(),
  };
}
