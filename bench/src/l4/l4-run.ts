import type { L4Options } from '../arguments.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { BackendName, BackendPorts, SubjectName } from '../subjects/subject.ts';
import { MeasuredSubject } from './measured-subject.ts';

export type L4RunOptions = L4Options & {
  readonly backends: { readonly ports: BackendPorts; readonly pid: number };
  readonly signal: AbortSignal;
};

/** Where the scenarios play: the backends, and those who take part. */
export class L4Run implements AsyncDisposable {
  readonly options: L4RunOptions;
  readonly descriptions: Map<SubjectName, string> = new Map();
  readonly leftOut: Set<string> = new Set();
  readonly #cleanup = new AsyncDisposableStack();
  readonly #sharedSubjects = new Map<SubjectName, Promise<MeasuredSubject>>();

  constructor(options: L4RunOptions) {
    this.options = options;
  }

  /** Those chosen that relay to the backend. They are started once, and stay for the whole run. */
  async sharedSubjects(backend: BackendName): Promise<MeasuredSubject[]> {
    const contenders: MeasuredSubject[] = [];
    for (const name of this.options.subjects) {
      const starting = this.#sharedSubjects.get(name) ?? this.#startSubject(name, this.#cleanup);
      this.#sharedSubjects.set(name, starting);
      const contender = await starting;
      if (await this.relaysTo(contender, backend)) contenders.push(contender);
    }
    return contenders;
  }

  /** Those chosen that relay to the backend, started anew, for as long as `during` takes them. */
  async startSubjects(
    names: readonly Exclude<SubjectName, 'direct'>[],
    { backend, during }: { readonly backend: BackendName; readonly during: AsyncDisposableStack },
  ): Promise<MeasuredSubject[]> {
    const contenders: MeasuredSubject[] = [];
    for (const name of names) {
      const contender = await this.#startSubject(name, during);
      if (await this.relaysTo(contender, backend)) contenders.push(contender);
    }
    return contenders;
  }

  /** Starts one more, for as long as `during` takes it. */
  async startSubject(
    name: Exclude<SubjectName, 'direct'>,
    during: AsyncDisposableStack,
    options: { readonly isInspected?: boolean } = {},
  ): Promise<MeasuredSubject> {
    return this.#startSubject(name, during, options);
  }

  /** Proves that it relays; or notes why it is left out. */
  async relaysTo(contender: MeasuredSubject, backend: BackendName): Promise<boolean> {
    const { name, unsupported } = contender.subject;
    const reason = unsupported?.[backend];
    if (reason === undefined) {
      await contender.verifyRelay(backend);
      return true;
    }
    this.leaveOut(`${name} of what goes to "${backend}", since ${reason}`);
    return false;
  }

  leaveOut(note: string): void {
    if (!this.leftOut.has(note)) this.logProgress(`left out: ${note}`);
    this.leftOut.add(note);
  }

  logProgress(text: string): void {
    console.error(`bench: ${text}`);
  }

  async #startSubject(
    name: Exclude<SubjectName, 'direct'>,
    during: AsyncDisposableStack,
    options: { readonly isInspected?: boolean } = {},
  ): Promise<MeasuredSubject> {
    const { backends, profile } = this.options;
    const profiling = profile === undefined ? {} : { profile };
    const subject = during.use(await startSubject(name, backends.ports, { ...profiling, ...options }));
    this.descriptions.set(name, subject.description);
    return new MeasuredSubject(subject);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup.disposeAsync();
  }
}
