import { createHash } from 'node:crypto';
import { type TarEntry, tarArchive } from './tar.ts';

export type OciImage = { readonly name: string; readonly entrypoint: readonly string[] };

/** An archive of images that share one layer, in the layout of the OCI image specification: what `ctr images import` reads. */
export function ociArchive(images: readonly OciImage[], files: readonly TarEntry[]): Buffer {
  const layer = tarArchive(files);
  const blobs = [layer];
  const manifests = images.map(({ name, entrypoint }) => {
    const config = json({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Entrypoint: entrypoint },
      rootfs: { type: 'layers', diff_ids: [digest(layer)] },
    });
    const manifest = json({
      schemaVersion: 2,
      mediaType: mediaType('manifest.v1+json'),
      config: descriptor('config.v1+json', config),
      layers: [descriptor('layer.v1.tar', layer)],
    });
    blobs.push(config, manifest);
    return { ...descriptor('manifest.v1+json', manifest), annotations: { 'io.containerd.image.name': name } };
  });
  const index = json({ schemaVersion: 2, mediaType: mediaType('index.v1+json'), manifests });
  return tarArchive([
    file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    file('index.json', index),
    ...blobs.map((blob) => file(`blobs/sha256/${digest(blob).slice('sha256:'.length)}`, blob)),
  ]);
}

function descriptor(kind: string, blob: Buffer): { mediaType: string; digest: string; size: number } {
  return { mediaType: mediaType(kind), digest: digest(blob), size: blob.length };
}

function mediaType(kind: string): string {
  return `application/vnd.oci.image.${kind}`;
}

function digest(blob: Buffer): string {
  return `sha256:${createHash('sha256').update(blob).digest('hex')}`;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function file(path: string, data: Uint8Array): TarEntry {
  return { kind: 'file', path, data, mode: 0o644 };
}
