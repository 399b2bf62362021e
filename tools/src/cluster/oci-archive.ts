import { createHash } from 'node:crypto';

export type OciImage = { readonly name: string; readonly entrypoint: readonly string[] };

/** Creates an archive for `ctr images import`, in the OCI image layout. All images share one layer with these files. */
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

export type TarEntry = { readonly path: string; readonly mode: number } & (
  | { readonly kind: 'file'; readonly data: Uint8Array }
  | { readonly kind: 'folder' }
);

const BLOCK_BYTES = 512;

/** Creates a POSIX (ustar) archive with these entries, owned by root. Equal entries give equal bytes. Throws if a path has over 100 bytes. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(tarEntry), Buffer.alloc(2 * BLOCK_BYTES)]);
}

function tarEntry(entry: TarEntry): Uint8Array[] {
  const data = entry.kind === 'file' ? entry.data : new Uint8Array();
  return [tarHeader(entry, data.length), data, Buffer.alloc((BLOCK_BYTES - (data.length % BLOCK_BYTES)) % BLOCK_BYTES)];
}

function tarHeader({ kind, path, mode }: TarEntry, size: number): Buffer {
  if (Buffer.byteLength(path) > 100)
    throw new Error(`invalid path "${path}": a ustar archive allows at most 100 bytes`);
  const fields = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, at: number, width: number): void => {
    fields.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  };
  fields.write(path, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  fields.fill(' ', 148, 156); // the checksum is computed as if its own field contained spaces
  fields.write(kind === 'file' ? '0' : '5', 156);
  fields.write('ustar\x0000', 257, 'latin1');
  octal(
    fields.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return fields;
}
