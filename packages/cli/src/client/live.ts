import type { LiveFrame } from '@weir/console';
import type { ConsoleClient } from './console-client.ts';

/** The frames of `/api/v1/live` as they come, until `signal` aborts or the console goes away. */
export async function* liveFrames(client: ConsoleClient, signal: AbortSignal): AsyncGenerator<LiveFrame> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of await client.stream('/api/v1/live', signal)) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const lines = event.split('\n');
      const data = lines.find((line) => line.startsWith('data: '));
      // The first event is the past, for graphs.
      if (lines.includes('event: rates') && data !== undefined) yield JSON.parse(data.slice('data: '.length));
    }
  }
}
