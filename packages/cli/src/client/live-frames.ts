import type { LiveFrame } from '@weir/console';
import type { ConsoleClient } from './console-client.ts';

/** The frames of `/api/v1/live` as they come, until `signal` aborts or the console goes away. */
export async function* liveFrames(
  client: Pick<ConsoleClient, 'stream'>,
  signal: AbortSignal,
): AsyncGenerator<LiveFrame> {
  for await (const { name, data } of serverEvents(await client.stream('/api/v1/live', signal))) {
    // The first event is the past, for graphs.
    if (name === 'rates') yield JSON.parse(data);
  }
}

export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** The server-sent events of a stream, each when it is whole. A line is put together once, in however many pieces it comes. */
export async function* serverEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let name = '';
  let data = '';
  for await (const chunk of chunks) {
    const [rest = '', ...beginnings] = decoder.decode(chunk, { stream: true }).split('\n');
    pieces.push(rest);
    for (const beginning of beginnings) {
      const line = pieces.join('');
      pieces = [beginning];
      if (line.startsWith('event: ')) name = line.slice('event: '.length);
      if (line.startsWith('data: ')) data = line.slice('data: '.length);
      if (line !== '') continue;
      if (data !== '') yield { name, data };
      name = '';
      data = '';
    }
  }
}
