// Reads the live rates, which are server-sent events. Uses fetch, because an EventSource cannot send the token.
import { authorizationHeaders } from './api.js';

const RETRY_DELAY_MS = 2000;

/**
 * Calls `onHistory(data)` and `onRates(data)` for each event of the live rates. Reconnects when the stream ends. Calls `onState(isOpen)`
 * when the connection opens or closes.
 */
export async function followLiveRates({ onState, onHistory, onRates }) {
  const handlers = { history: onHistory, rates: onRates };
  for (;;) {
    try {
      const response = await fetch('api/v1/live', { headers: authorizationHeaders() });
      if (response.ok) {
        onState(true);
        for await (const { name, data } of serverSentEvents(response.body)) handlers[name]?.(JSON.parse(data));
      }
    } catch {
      // A broken connection is handled like the normal end of the stream.
    }
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
  }
}

async function* serverSentEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let chunks = [];
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    chunks.push(read.value);
    // Only a chunk with a line break can complete an event. If each chunk were joined with the previous chunks, long events would take
    // quadratic time.
    if (!read.value.includes('\n')) continue;
    const events = chunks.join('').split('\n\n');
    chunks = [events.pop()];
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (name !== undefined && data !== undefined) yield { name, data };
    }
  }
}
