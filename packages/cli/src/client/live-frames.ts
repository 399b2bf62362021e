import type { LiveFrame } from '@weir/console';
import type { ConsoleClient } from './console-client.ts';

/** Yields the frames of `/api/v1/live` until `signal` is aborted or the console closes the stream. */
export async function* liveFrames(
  client: Pick<ConsoleClient, 'stream'>,
  signal: AbortSignal,
): AsyncGenerator<LiveFrame> {
  for await (const { name, data } of serverSentEvents(await client.stream('/api/v1/live', signal))) {
    // Skips the `history` events, which are for the graphs of the console's page.
    if (name === 'rates') yield JSON.parse(data);
  }
}

export interface ServerSentEvent {
  readonly name: string;
  readonly data: string;
}

/** Yields each complete server-sent event. */
export async function* serverSentEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  let name = '';
  let data = '';
  for await (const line of linesOf(chunks)) {
    if (line.startsWith('event: ')) name = line.slice('event: '.length);
    if (line.startsWith('data: ')) data = line.slice('data: '.length);
    if (line !== '') continue;
    if (data !== '') yield { name, data };
    name = '';
    data = '';
  }
}

/** Yields each complete line. Joins the parts of a line only when the line is complete, so that long lines take linear time. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let lineParts: string[] = [];
  for await (const chunk of chunks) {
    const [lineEnd = '', ...lineStarts] = decoder.decode(chunk, { stream: true }).split('\n');
    lineParts.push(lineEnd);
    for (const lineStart of lineStarts) {
      yield lineParts.join('');
      lineParts = [lineStart];
    }
  }
}
