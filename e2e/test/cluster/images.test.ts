// Tests the contents of the built images, and their behaviour under a strict security context.
import { before, describe } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { insideSandbox, requireProgram, weirImages } from '@weir/tools';
import { type UnpackedImage, type UnpackedImages, unpackImage } from '../../src/images/unpacked-image.ts';
import { imageContents } from './image-contents.ts';
import { imagesRunning } from './images-running.ts';

const requirement = { ...requireProgram('images', 'kubernetes', 'runc', 'ip'), ...insideSandbox() };

describe('the images', { ...requirement, timeout: 300_000 }, () => {
  let images: UnpackedImages;
  before(async () => {
    const archives = await weirImages();
    // Never removes the folders, because they are in the memory of the sandbox and disappear with the sandbox.
    const unpack = (kind: keyof UnpackedImages): UnpackedImage =>
      unpackImage(archives[kind], temporaryDirectory(kind).path);
    images = { proxy: unpack('proxy'), controller: unpack('controller'), redis: unpack('redis') };
  });

  imageContents(() => images);
  imagesRunning(() => images);
});
