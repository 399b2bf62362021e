import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';

/** Environment variable with a JSON list of the reasons why tests are skipped. */
export const SKIP_REASONS_VARIABLE = 'WEIR_SKIP_REASONS';

/** Prints what Node's spec reporter prints. Before the final summary, also prints the reasons why tests are skipped. */
// biome-ignore lint/style/noDefaultExport: node --test-reporter asks for a default export
export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const reasons = JSON.parse(process.env[SKIP_REASONS_VARIABLE] || '[]') as string[];
  const inner = spec();
  inner.setEncoding('utf8');
  let hasPrintedReasons = false;
  for await (const event of events) {
    if (!hasPrintedReasons && isSummaryStart(event)) {
      hasPrintedReasons = true;
      for (const reason of reasons) yield `﹣ skipped tests: ${reason}\n`;
    }
    inner.write(event);
    yield* drainStream(inner);
  }
  inner.end();
  yield* drainStream(inner);
}

/** Reports whether an event starts the final summary: a line such as "tests 12" at nesting 0. Deeper lines are for one file. */
function isSummaryStart(event: TestEvent): boolean {
  return event.type === 'test:diagnostic' && event.data.nesting === 0 && /^tests \d+$/.test(event.data.message);
}

function* drainStream(stream: NodeJS.ReadableStream): Generator<string> {
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) yield String(chunk);
}
