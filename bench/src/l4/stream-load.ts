import { downloadBulk } from '../load/bulk-sink.ts';
import { exactTraffic } from '../measure/moved.ts';
import type { Load, LoadResult } from './load.ts';

/** So much for each second of a turn: about half of what one core relays, whoever it is. */
const STREAM_BYTES_PER_SECOND = 500e6;

export const oneStream: Load = {
  title: 'one stream',
  unit: 'CPU-ms per GB',
  backend: 'bulk',
  run: runStream,
  figure: (cpuMs, { count }) => cpuMs / (count / 1e9),
};

async function runStream(port: number, seconds: number): Promise<LoadResult> {
  const bytes = seconds * STREAM_BYTES_PER_SECOND;
  const { requestBytes, ms } = await downloadBulk(port, bytes);
  const traffic = exactTraffic({ receivedBytes: requestBytes, sentBytes: bytes, connections: 1 });
  return { count: bytes, ms, traffic, errors: [] };
}
