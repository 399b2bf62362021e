import type { Disturbances } from './disturbances.ts';
import type { Population } from './population.ts';
import type { SelfView } from './proxy-self-view.ts';
import type { Weir } from './weir-process.ts';

const eachMs = 10_000;

/** One line in 10 seconds, so that whoever waits sees that it lives. */
export class ProgressLines implements Disposable {
  readonly #weir: Weir;
  readonly #population: Population;
  readonly #disturbances: Disturbances;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(weir: Weir, population: Population, disturbances: Disturbances) {
    this.#weir = weir;
    this.#population = population;
    this.#disturbances = disturbances;
    this.#timer = setInterval(() => {
      this.#line().then(
        (line) => this.say(line),
        (error: Error) => this.say(`the proxy does not tell: ${error.message}`),
      );
    }, eachMs);
  }

  say(text: string): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000);
    console.log(`${String(seconds).padStart(4)} s  ${text}`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #line(): Promise<string> {
    const view = await this.#weir.view();
    const files = Object.values(this.#weir.openFiles()).reduce((sum, each) => sum + each, 0);
    const { workers, suspensions } = this.#disturbances.rounds;
    return [
      `${view.connections} active (${this.#population.open} clients)`,
      `${this.#population.born} begun`,
      outcomesText(view),
      `${(this.#weir.residentKiB() / 1024).toFixed(0)} MiB`,
      `${files} fds`,
      `${workers} workers ended, ${suspensions} suspensions`,
    ].join(', ');
  }
}

function outcomesText({ services }: SelfView): string {
  const sums: Record<string, number> = {};
  for (const { outcomes } of services) {
    for (const [outcome, count] of Object.entries(outcomes)) sums[outcome] = (sums[outcome] ?? 0) + count;
  }
  return Object.entries(sums)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(' ');
}
