import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';

/** A list of lines, as JSON. */
export const SKIP_REASONS_VARIABLE = 'WEIR_LEFT_OUT';

/** node's spec reporter, with what was left out said once more just before its summary, which stays last. */
// biome-ignore lint/style/noDefaultExport: node --test-reporter asks for a default export
export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const notes = JSON.parse(process.env[SKIP_REASONS_VARIABLE] || '[]') as string[];
  const inner = spec();
  inner.setEncoding('utf8');
  let said = false;
  for await (const event of events) {
    if (!said && isSummaryStart(event)) {
      said = true;
      for (const note of notes) yield `﹣ left out, since ${note}\n`;
    }
    inner.write(event);
    yield* drainStream(inner);
  }
  inner.end();
  yield* drainStream(inner);
}

/** The summary's first line: "tests 12". It belongs to the run, not to a file. */
function isSummaryStart(event: TestEvent): boolean {
  return event.type === 'test:diagnostic' && event.data.nesting === 0 && /^tests \d+$/.test(event.data.message);
}

function* drainStream(stream: NodeJS.ReadableStream): Generator<string> {
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) yield String(chunk);
}
