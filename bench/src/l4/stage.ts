import type { L4Options } from '../arguments.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { BackendName, Ports } from '../subjects/subject.ts';
import type { SubjectName } from '../subjects/subject-name.ts';
import { Contender } from './contender.ts';

export type StageOptions = L4Options & {
  readonly backends: { readonly ports: Ports; readonly pid: number };
  readonly signal: AbortSignal;
};

/** Where the scenarios play: the backends, and those who take part. */
export class Stage implements AsyncDisposable {
  readonly options: StageOptions;
  readonly descriptions: Map<SubjectName, string> = new Map();
  readonly leftOut: Set<string> = new Set();
  readonly #cleanup = new AsyncDisposableStack();
  readonly #standing = new Map<SubjectName, Promise<Contender>>();

  constructor(options: StageOptions) {
    this.options = options;
  }

  /** Those chosen that relay to the backend. They are started once, and stay for the whole run. */
  async contenders(backend: BackendName): Promise<Contender[]> {
    const contenders: Contender[] = [];
    for (const name of this.options.subjects) {
      const starting = this.#standing.get(name) ?? this.#start(name, this.#cleanup);
      this.#standing.set(name, starting);
      const contender = await starting;
      if (await this.isReady(contender, backend)) contenders.push(contender);
    }
    return contenders;
  }

  /** Those chosen that relay to the backend, started anew, for as long as `during` takes them. */
  async fresh(
    names: readonly Exclude<SubjectName, 'direct'>[],
    { backend, during }: { readonly backend: BackendName; readonly during: AsyncDisposableStack },
  ): Promise<Contender[]> {
    const contenders: Contender[] = [];
    for (const name of names) {
      const contender = await this.#start(name, during);
      if (await this.isReady(contender, backend)) contenders.push(contender);
    }
    return contenders;
  }

  /** Starts one more, for as long as `during` takes it. */
  async extra(
    name: Exclude<SubjectName, 'direct'>,
    during: AsyncDisposableStack,
    options: { readonly isInspected?: boolean } = {},
  ): Promise<Contender> {
    return this.#start(name, during, options);
  }

  /** Proves that it relays; or notes why it is left out. */
  async isReady(contender: Contender, backend: BackendName): Promise<boolean> {
    const { name, lacks } = contender.subject;
    const reason = lacks?.[backend];
    if (reason === undefined) {
      await contender.prove(backend);
      return true;
    }
    this.leaveOut(`${name} of what goes to "${backend}", since ${reason}`);
    return false;
  }

  leaveOut(note: string): void {
    if (!this.leftOut.has(note)) this.say(`left out: ${note}`);
    this.leftOut.add(note);
  }

  say(text: string): void {
    console.error(`bench: ${text}`);
  }

  async #start(
    name: Exclude<SubjectName, 'direct'>,
    during: AsyncDisposableStack,
    options: { readonly isInspected?: boolean } = {},
  ): Promise<Contender> {
    const { backends, profile } = this.options;
    const profiling = profile === undefined ? {} : { profile };
    const subject = during.use(await startSubject(name, backends.ports, { ...profiling, ...options }));
    this.descriptions.set(name, subject.description);
    return new Contender(subject);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup.disposeAsync();
  }
}
