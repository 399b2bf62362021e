import type { FaultInjector } from './disturbances.ts';
import type { LoadGenerator } from './population.ts';
import type { ProxyView } from './proxy-self-view.ts';
import type { StandaloneWeir } from './weir-process.ts';

const PROGRESS_INTERVAL_MS = 10_000;

/** One line in 10 seconds, so that whoever waits sees that it lives. */
export class ProgressReporter implements Disposable {
  readonly #weir: StandaloneWeir;
  readonly #loadGenerator: LoadGenerator;
  readonly #faultInjector: FaultInjector;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(weir: StandaloneWeir, population: LoadGenerator, disturbances: FaultInjector) {
    this.#weir = weir;
    this.#loadGenerator = population;
    this.#faultInjector = disturbances;
    this.#timer = setInterval(() => {
      this.#formatLine().then(
        (line) => this.log(line),
        (error: Error) => this.log(`the proxy does not tell: ${error.message}`),
      );
    }, PROGRESS_INTERVAL_MS);
  }

  log(text: string): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000);
    console.log(`${String(seconds).padStart(4)} s  ${text}`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #formatLine(): Promise<string> {
    const view = await this.#weir.view();
    const files = Object.values(this.#weir.descriptorCounts()).reduce((sum, each) => sum + each, 0);
    const { workers, suspensions } = this.#faultInjector.faultCounts;
    return [
      `${view.connections} active (${this.#loadGenerator.openClients} clients)`,
      `${this.#loadGenerator.startedClients} begun`,
      formatOutcomes(view),
      `${(this.#weir.residentKiB() / 1024).toFixed(0)} MiB`,
      `${files} fds`,
      `${workers} workers ended, ${suspensions} suspensions`,
    ].join(', ');
  }
}

function formatOutcomes({ services }: ProxyView): string {
  const sums: Record<string, number> = {};
  for (const { outcomes } of services) {
    for (const [outcome, count] of Object.entries(outcomes)) sums[outcome] = (sums[outcome] ?? 0) + count;
  }
  return Object.entries(sums)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(' ');
}
