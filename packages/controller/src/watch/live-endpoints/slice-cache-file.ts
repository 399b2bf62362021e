import { dirname } from 'node:path';
import type { SliceObject } from '@weir/model';
import { ensureDirectory, errorMessage, type Logger, readFileIfPresent, writeFileAtomic } from '@weir/runtime';
import type { Json } from '../../kubernetes/kube-api.ts';
import { parseEndpointSlice, SERVICE_NAME_LABEL } from '../../parse/endpoint-slice.ts';
import type { LiveSlices } from './slice-watch.ts';

/** The slices of each Service, by `namespace/name` of the Service. */
type LiveSlicesByService = ReadonlyMap<string, LiveSlices>;

interface CachedService {
  readonly service: string;
  /** Whether the API server was unreachable (kind `unreachable` of the `LiveSlices`). */
  readonly failed: boolean;
  /** EndpointSlice manifests. */
  readonly slices: readonly Json[];
}

const FILE_VERSION = 1;

/** Keeps the last slices of an API server on disk. After a restart of the node, that API server may be reachable only through Weir. */
export class SliceCacheFile {
  readonly #path: string;
  readonly #log: Logger;
  #pending: LiveSlicesByService | undefined;
  #writing: Promise<void> | undefined;
  /** The text that was last written to the file. */
  #written = '';

  constructor(path: string, log: Logger) {
    this.#path = path;
    this.#log = log;
  }

  /** Reads the file. Returns an empty map if the file is missing or unusable; then only the user's manifests provide endpoints. */
  async read(): Promise<LiveSlicesByService> {
    try {
      const text = await readFileIfPresent(this.#path);
      return text === undefined ? new Map() : parseCache(text);
    } catch (error) {
      const fields = { path: this.#path, reason: errorMessage(error) };
      this.#log.error(fields, 'failed to read cached endpoints; using the manifests until the API server answers');
      return new Map();
    }
  }

  /** Writes the file in the background. After several calls, the file contains the map of the last call. */
  write(slicesByService: LiveSlicesByService): void {
    this.#pending = slicesByService;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#pending !== undefined) {
      const text = cacheText(this.#pending);
      this.#pending = undefined;
      if (text === this.#written) continue;
      try {
        await ensureDirectory(dirname(this.#path));
        await writeFileAtomic(this.#path, text);
        this.#written = text;
      } catch (error) {
        const fields = { path: this.#path, reason: errorMessage(error) };
        this.#log.error(fields, 'failed to write cached endpoints; a restart loses them unless a later write succeeds');
      }
    }
  }
}

function cacheText(slicesByService: LiveSlicesByService): string {
  const services = [...slicesByService].flatMap(([service, live]): CachedService[] =>
    live.kind === 'none' ? [] : [{ service, failed: live.kind === 'unreachable', slices: live.slices.map(manifestOf) }],
  );
  return `${JSON.stringify({ version: FILE_VERSION, services }, null, 1)}\n`;
}

function parseCache(text: string): LiveSlicesByService {
  const { version, services } = JSON.parse(text) as { version?: unknown; services?: readonly CachedService[] };
  if (version !== FILE_VERSION || !Array.isArray(services)) throw new Error(`expected version ${FILE_VERSION}`);
  return new Map(
    services.map(({ service, failed, slices }: CachedService) => [
      service,
      { kind: failed ? 'unreachable' : 'cached', slices: slices.map(parseSlice) },
    ]),
  );
}

function parseSlice(manifest: Json): SliceObject {
  const { object, problems } = parseEndpointSlice(manifest);
  if (object === undefined) throw new Error(problems[0]?.message ?? 'expected an EndpointSlice');
  return object;
}

function manifestOf({ namespace, name, uid, serviceName, addressType, ports, endpoints }: SliceObject): Json {
  return {
    metadata: { namespace, name, uid, labels: { [SERVICE_NAME_LABEL]: serviceName } },
    addressType,
    ports,
    endpoints: endpoints.map(({ addresses, zone, hintedZones, ready, serving, terminating }) => ({
      addresses,
      zone,
      conditions: { ready, serving, terminating },
      ...(hintedZones && { hints: { forZones: hintedZones.map((each) => ({ name: each })) } }),
    })),
  };
}
