import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';

/** Environment variable with a JSON list of the reasons why tests are skipped. */
export const SKIP_REASONS_VARIABLE = 'WEIR_SKIP_REASONS';

/** How many lines of the standard error of each test file are kept. */
const KEPT_LINES = 150;

/**
 * Prints what Node's spec reporter prints. Before the final summary, also prints the reasons why tests are skipped, and the last lines
 * that the files of failed tests wrote to the standard error. At the place where they were written, these lines are hard to find among the
 * lines of other files.
 */
// biome-ignore lint/style/noDefaultExport: node --test-reporter asks for a default export
export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const reasons = JSON.parse(process.env[SKIP_REASONS_VARIABLE] || '[]') as string[];
  const inner = spec();
  inner.setEncoding('utf8');
  const errors = new FileErrors();
  let hasSummaryStarted = false;
  for await (const event of events) {
    errors.observe(event);
    if (!hasSummaryStarted && isSummaryStart(event)) {
      hasSummaryStarted = true;
      for (const reason of reasons) yield `﹣ skipped tests: ${reason}\n`;
      yield* errors.ofFailedFiles();
    }
    inner.write(event);
    yield* drainStream(inner);
  }
  inner.end();
  yield* drainStream(inner);
}

/** Collects what the test files write to the standard error. */
class FileErrors {
  readonly #linesByFile = new Map<string, string[]>();
  readonly #failedFiles = new Set<string>();

  observe({ type, data }: TestEvent): void {
    if (type === 'test:fail' && data.file !== undefined) this.#failedFiles.add(data.file);
    if (type !== 'test:stderr') return;
    const lines = [...(this.#linesByFile.get(data.file) ?? []), ...data.message.trimEnd().split('\n')];
    this.#linesByFile.set(data.file, lines.slice(-KEPT_LINES));
  }

  *ofFailedFiles(): Generator<string> {
    for (const [file, lines] of this.#linesByFile) {
      if (this.#failedFiles.has(file)) yield `✖ standard error of ${file}:\n${lines.join('\n')}\n`;
    }
  }
}

/** Reports whether an event starts the final summary: a line such as "tests 12" at nesting 0. Deeper lines are for one file. */
function isSummaryStart(event: TestEvent): boolean {
  return event.type === 'test:diagnostic' && event.data.nesting === 0 && /^tests \d+$/.test(event.data.message);
}

function* drainStream(stream: NodeJS.ReadableStream): Generator<string> {
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) yield String(chunk);
}
