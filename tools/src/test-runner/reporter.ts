import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';

/** Environment variable with a JSON list of the reasons why tests are skipped. */
export const SKIP_REASONS_VARIABLE = 'WEIR_SKIP_REASONS';

const MAX_STDERR_LINES_PER_FILE = 150;

/**
 * Prints what Node's spec reporter prints. Before the final summary, also prints the reasons why tests are skipped, and repeats the last
 * lines that the files of failed tests wrote to stderr, because the outputs of parallel files are interleaved.
 */
// biome-ignore lint/style/noDefaultExport: node --test-reporter asks for a default export
export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const reasons = JSON.parse(process.env[SKIP_REASONS_VARIABLE] || '[]') as string[];
  const inner = spec();
  inner.setEncoding('utf8');
  const stderr = new StderrByFile();
  let hasSummaryStarted = false;
  for await (const event of events) {
    stderr.observe(event);
    if (!hasSummaryStarted && isSummaryStart(event)) {
      hasSummaryStarted = true;
      for (const reason of reasons) yield `﹣ skipped tests: ${reason}\n`;
      yield* stderr.formatFailedFiles();
    }
    inner.write(event);
    yield* drainStream(inner);
  }
  inner.end();
  yield* drainStream(inner);
}

/** Collects what each test file writes to stderr. */
class StderrByFile {
  readonly #linesByFile = new Map<string, string[]>();
  readonly #failedFiles = new Set<string>();

  observe({ type, data }: TestEvent): void {
    if (type === 'test:fail') this.#failedFiles.add(testFileOf(data));
    if (type !== 'test:stderr') return;
    const file = testFileOf(data);
    const lines = [...(this.#linesByFile.get(file) ?? []), ...data.message.trimEnd().split('\n')];
    this.#linesByFile.set(file, lines.slice(-MAX_STDERR_LINES_PER_FILE));
  }

  *formatFailedFiles(): Generator<string> {
    for (const [file, lines] of this.#linesByFile) {
      if (this.#failedFiles.has(file)) yield `✖ stderr of ${file}:\n${lines.join('\n')}\n`;
    }
  }
}

/** Returns the absolute path of the file that the runner started. `file` is the module that defines the test, which that file may import. */
function testFileOf({ file = '', entryFile = file }: { readonly file?: string; readonly entryFile?: string }): string {
  return resolve(entryFile);
}

/** Reports whether an event starts the final summary: a line such as "tests 12" at nesting 0. Deeper lines are for one file. */
function isSummaryStart(event: TestEvent): boolean {
  return event.type === 'test:diagnostic' && event.data.nesting === 0 && /^tests \d+$/.test(event.data.message);
}

function* drainStream(stream: NodeJS.ReadableStream): Generator<string> {
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) yield String(chunk);
}
