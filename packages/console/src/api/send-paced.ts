import type { Writable } from 'node:stream';

/** Writes the texts no faster than they are read, so that only so much waits in memory; ends early with the stream. */
export async function writeWithBackpressure(stream: Writable, texts: Iterable<string>): Promise<void> {
  for (const text of texts) {
    if (stream.destroyed || stream.writableEnded) return;
    if (!stream.write(text)) await untilDrained(stream);
  }
}

function untilDrained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      stream.off('drain', settle);
      stream.off('close', settle);
      resolve();
    };
    stream.on('drain', settle);
    stream.on('close', settle);
  });
}
