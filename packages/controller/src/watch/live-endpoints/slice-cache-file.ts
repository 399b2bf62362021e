import { dirname } from 'node:path';
import type { SliceObject } from '@weir/model';
import { ensureDirectory, errorMessage, type Logger, readFileIfPresent, writeFileAtomic } from '@weir/runtime';
import type { Json } from '../../kubernetes/kube-api.ts';
import { parseEndpointSlice, SERVICE_NAME_LABEL } from '../../parse/endpoint-slice.ts';
import type { LiveSlices } from './slice-watch.ts';

/** By `namespace/name` of the Service. */
type LiveSlicesByService = ReadonlyMap<string, LiveSlices>;

interface CachedService {
  readonly service: string;
  /** As of `Refinement`. */
  readonly failed: boolean;
  /** EndpointSlices, as in a manifest. */
  readonly slices: readonly Json[];
}

const VERSION = 1;

/** What an API server said last, on disk: after a restart it may be reached over nothing else. */
export class SliceCacheFile {
  readonly #path: string;
  readonly #log: Logger;
  #wanted: LiveSlicesByService | undefined;
  #writing: Promise<void> | undefined;
  /** What stands there. */
  #written = '';

  constructor(path: string, log: Logger) {
    this.#path = path;
    this.#log = log;
  }

  /** A file that cannot be used is none: the files of the user serve. */
  async read(): Promise<LiveSlicesByService> {
    try {
      const text = await readFileIfPresent(this.#path);
      return text === undefined ? new Map() : parseCache(text);
    } catch (error) {
      const fields = { path: this.#path, reason: errorMessage(error) };
      this.#log.error(fields, 'what the API server said last cannot be used; it is written anew once it is reached');
      return new Map();
    }
  }

  /** The last one asked for is what stands there in the end. */
  write(refinements: LiveSlicesByService): void {
    this.#wanted = refinements;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#wanted !== undefined) {
      const text = cacheText(this.#wanted);
      this.#wanted = undefined;
      if (text === this.#written) continue;
      try {
        await ensureDirectory(dirname(this.#path));
        await writeFileAtomic(this.#path, text);
        this.#written = text;
      } catch (error) {
        const fields = { path: this.#path, reason: errorMessage(error) };
        this.#log.error(fields, 'what the API server says of endpoints is not kept over a restart');
      }
    }
  }
}

function cacheText(refinements: LiveSlicesByService): string {
  const services = [...refinements].flatMap(([service, refinement]): CachedService[] =>
    refinement.kind === 'none'
      ? []
      : [{ service, failed: refinement.kind === 'failed', slices: refinement.slices.map(manifestOf) }],
  );
  return `${JSON.stringify({ version: VERSION, services }, null, 1)}\n`;
}

function parseCache(text: string): LiveSlicesByService {
  const { version, services } = JSON.parse(text) as { version?: unknown; services?: readonly CachedService[] };
  if (version !== VERSION || !Array.isArray(services)) throw new Error(`it is not of version ${VERSION}`);
  return new Map(
    services.map(({ service, failed, slices }: CachedService) => [
      service,
      { kind: failed ? 'failed' : 'unread', slices: slices.map(parseSlice) },
    ]),
  );
}

function parseSlice(manifest: Json): SliceObject {
  const { object, problems } = parseEndpointSlice(manifest);
  if (object === undefined) throw new Error(problems[0]?.message ?? 'it holds no EndpointSlice');
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
