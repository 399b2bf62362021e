import { type Colourize, colourizeFor } from '../output/colour.ts';
import type { Terminal } from '../terminal.ts';

/** Tells the story of the demo, and keeps what was not as it said. */
export class DemoReport {
  readonly #terminal: Terminal;
  readonly #paint: Colourize;
  readonly #failures: string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#paint = colourizeFor(terminal.colour);
  }

  get failures(): readonly string[] {
    return this.#failures;
  }

  title(text: string): void {
    this.#terminal.out(`\n${this.#paint('bold', text)}\n`);
  }

  info(text: string): void {
    this.#terminal.out(`${text.replace(/^/gm, '  ')}\n`);
  }

  /** What is said, and whether it was so. */
  check(said: string, isSo: boolean, seen = ''): void {
    const mark = isSo ? this.#paint('green', 'ok ') : this.#paint('red', 'NOT');
    this.#terminal.out(`  ${mark} ${said}${seen === '' ? '' : `: ${seen}`}\n`);
    if (!isSo) this.#failures.push(said);
  }
}
