// The listeners of a proxy in chunks, so that one of many thousands that changes costs its chunk: in what is sent, and in what is
// read. Which chunk one is in follows from its id alone, so that others stay where they are when it comes or goes.
import { createHash } from 'node:crypto';
import { hashText, type ListenerReport } from '@weir/model/data-plane';

export interface ListenerChunks {
  readonly listeners: readonly ListenerReport[];
  readonly chunks: readonly ListenerChunk[];
  /** Digest of the digests. */
  readonly root: string;
}

export interface ListenerChunk {
  readonly reports: readonly ListenerReport[];
  readonly text: string;
  readonly digest: string;
}

const TARGET_CHUNK_SIZE = 100;
/** Another number of chunks is another chunk for everybody: so it stays while they are anything like the wanted size. */
const MAX_MEAN_CHUNK_SIZE = 200;
const MIN_MEAN_CHUNK_SIZE = 25;

/** `before`: the last ones, of which those that say the same are taken over. */
export function chunkListeners(
  listeners: readonly ListenerReport[],
  before: ListenerChunks | undefined,
): ListenerChunks {
  if (before?.listeners === listeners) return before;
  const count = chunkCountFor(listeners.length, before?.chunks.length);
  const groups = Array.from({ length: count }, (): ListenerReport[] => []);
  for (const report of listeners) groups[hashText(report.id, 0) % count]?.push(report);
  const chunks = groups.map((reports, index) => {
    const old = before?.chunks.length === count ? before.chunks[index] : undefined;
    return old !== undefined && isSame(old.reports, reports) ? old : chunkOf(reports);
  });
  return { listeners: listeners, chunks, root: digestOf(chunks.map(({ digest }) => digest).join(' ')) };
}

function chunkCountFor(listeners: number, before: number | undefined): number {
  const isFine =
    before !== undefined &&
    listeners <= MAX_MEAN_CHUNK_SIZE * before &&
    (before === 1 || listeners >= MIN_MEAN_CHUNK_SIZE * before);
  return isFine ? before : 2 ** Math.max(0, Math.ceil(Math.log2(listeners / TARGET_CHUNK_SIZE)));
}

function chunkOf(reports: readonly ListenerReport[]): ListenerChunk {
  const text = JSON.stringify(reports);
  return { reports, text, digest: digestOf(text) };
}

/** Of two equal ones nothing is sent, so they must be hard to make on purpose: 96 bits of SHA-256. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64').slice(0, 16);
}

function isSame(a: readonly ListenerReport[], b: readonly ListenerReport[]): boolean {
  return (
    a.length === b.length &&
    a.every((report, index) => {
      const other = b[index];
      return (
        report === other ||
        (report.id === other?.id &&
          report.service === other.service &&
          report.bound === other.bound &&
          report.listening === other.listening &&
          report.error === other.error)
      );
    })
  );
}
