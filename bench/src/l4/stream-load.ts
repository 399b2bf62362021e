import { takeBulk } from '../load/bulk-sink.ts';
import { exactly } from '../measure/moved.ts';
import type { Load, Loaded } from './load.ts';

/** So much for each second of a turn: about half of what one core relays, whoever it is. */
const bytesPerSecond = 500e6;

export const oneStream: Load = {
  title: 'one stream',
  unit: 'CPU-ms per GB',
  backend: 'bulk',
  run: stream,
  figure: (cpuMs, { count }) => cpuMs / (count / 1e9),
};

async function stream(port: number, seconds: number): Promise<Loaded> {
  const bytes = seconds * bytesPerSecond;
  const { requestBytes, ms } = await takeBulk(port, bytes);
  const moved = exactly({ receivedBytes: requestBytes, sentBytes: bytes, connections: 1 });
  return { count: bytes, ms, moved, complaints: [] };
}
