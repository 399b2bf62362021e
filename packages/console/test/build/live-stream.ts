import type { TestConsole } from './running-console.ts';

export interface LiveStream extends AsyncDisposable {
  readonly status: number;
  /** All that came. */
  readonly text: string;
  readonly hasEnded: boolean;
  /** The data of the next event of that name. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
  nextEvent(name: string): Promise<any>;
}

/** `/api/v1/live` of somebody with a token, read as it comes. */
export async function openLiveStream(console: TestConsole, token: string): Promise<LiveStream> {
  const stopping = new AbortController();
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(new URL('/api/v1/live', console.url), { headers, signal: stopping.signal });
  let text = '';
  let hasEnded = false;
  let read = 0;
  let wake = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      wake.resolve();
      wake = Promise.withResolvers();
    }
  })()
    .catch(() => {})
    .finally(() => {
      hasEnded = true;
      wake.resolve();
    });
  return {
    status: response.status,
    get text() {
      return text;
    },
    get hasEnded() {
      return hasEnded;
    },
    async nextEvent(name) {
      for (;;) {
        const woken = wake.promise;
        const match = new RegExp(`event: ${name}\\n(?:id: .*\\n)?data: (.*)\\n\\n`).exec(text.slice(read));
        if (match !== null) {
          read += match.index + match[0].length;
          return JSON.parse(match[1] ?? '');
        }
        if (hasEnded) throw new Error(`the stream ended before ${name}`);
        await woken;
      }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await reading;
    },
  };
}
