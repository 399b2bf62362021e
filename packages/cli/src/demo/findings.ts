import { type Paint, paintFor } from '../output/colour.ts';
import type { Terminal } from '../terminal.ts';

/** Tells the story of the demo, and keeps what was not as it said. */
export class Findings {
  readonly #terminal: Terminal;
  readonly #paint: Paint;
  readonly #wrong: string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#paint = paintFor(terminal.colour);
  }

  get wrong(): readonly string[] {
    return this.#wrong;
  }

  title(text: string): void {
    this.#terminal.out(`\n${this.#paint('bold', text)}\n`);
  }

  tell(text: string): void {
    this.#terminal.out(`${text.replace(/^/gm, '  ')}\n`);
  }

  /** What is said, and whether it was so. */
  check(said: string, isSo: boolean, seen = ''): void {
    const mark = isSo ? this.#paint('green', 'ok ') : this.#paint('red', 'NOT');
    this.#terminal.out(`  ${mark} ${said}${seen === '' ? '' : `: ${seen}`}\n`);
    if (!isSo) this.#wrong.push(said);
  }
}
