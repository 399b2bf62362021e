// Live rates as server-sent events. By fetch: an EventSource sends no token.
import { signedBy } from './api.js';

const AGAIN_MS = 2000;

/** Connects again when the stream ends. `onState(isOpen)`, `onHistory(data)`, `onRates(data)`. */
export async function live({ onState, onHistory, onRates }) {
  const takers = { history: onHistory, rates: onRates };
  for (;;) {
    try {
      const response = await fetch('api/v1/live', { headers: signedBy() });
      if (response.ok) {
        onState(true);
        for await (const { name, data } of events(response.body)) takers[name]?.(JSON.parse(data));
      }
    } catch {
      // The connection broke off: said below as any other end.
    }
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = [];
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    // A piece that ends no event is not looked through again.
    pieces.push(read.value);
    if (!read.value.includes('\n')) continue;
    const [rest, ...whole] = pieces.join('').split('\n\n').reverse();
    pieces = [rest];
    for (const text of whole.reverse()) {
      const name = /^event: (.*)$/m.exec(text)?.[1];
      const data = /^data: (.*)$/m.exec(text)?.[1];
      if (name !== undefined && data !== undefined) yield { name, data };
    }
  }
}
