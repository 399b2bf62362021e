import { once } from 'node:events';
import { connect } from 'node:net';
import { blockSize, bulkBlock } from './bulk-pattern.ts';

export type BulkReading = { readonly requestBytes: number; readonly bytes: number; readonly ms: number };

const bufferSize = 256 * 1024;
const silenceMs = 10_000;
/** One block and the beginning of the next, so that what arrives can be compared wherever it begins. */
const expected = Buffer.concat([bulkBlock(), bulkBlock().subarray(0, bufferSize)]);

/** Takes one stream of about `ms` milliseconds from a bulk source. Throws when a byte is not as sent, or it ends badly. */
export async function takeBulk(port: number, ms: number): Promise<BulkReading> {
  const shared = Buffer.allocUnsafeSlow(bufferSize);
  let bytes = 0;
  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: {
      buffer: shared,
      callback: (count) => {
        const at = bytes % blockSize;
        if (expected.compare(shared, 0, count, at, at + count) !== 0) {
          socket.destroy(
            new Error(`bytes ${bytes} to ${bytes + count} of the bulk stream are not those that were sent`),
          );
        }
        bytes += count;
        return true;
      },
    },
  });
  socket.setTimeout(silenceMs, () => socket.destroy(new Error(`the bulk stream was silent for ${silenceMs} ms`)));
  const ended = once(socket, 'end');
  const closed = once(socket, 'close');
  const request = `${ms}\n`;
  const begin = performance.now();
  socket.write(request);
  await ended; // rejects on an error, so a reset or a foreign byte does not pass for an end
  await closed;
  if (bytes === 0) throw new Error('the bulk stream ended without a byte');
  return { requestBytes: request.length, bytes, ms: performance.now() - begin };
}
