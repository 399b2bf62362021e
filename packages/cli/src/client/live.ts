import type { LiveFrame } from '@weir/console';
import type { ConsoleClient } from './console-client.ts';
import { serverEvents } from './server-events.ts';

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
