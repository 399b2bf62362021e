import { logProgress } from '../report/run-metadata.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { BackendName, BackendPorts, StartableSubjectName, SubjectName } from '../subjects/subject.ts';
import { MeasuredSubject } from './measured-subject.ts';
import type { L4Options } from './options.ts';

export type L4RunOptions = L4Options & {
  readonly backends: { readonly ports: BackendPorts; readonly echoPid: number };
  readonly signal: AbortSignal;
};

/** The options, backends and subjects that all scenarios of one run share. */
export class L4Run implements AsyncDisposable {
  readonly options: L4RunOptions;
  readonly descriptions: Map<SubjectName, string> = new Map();
  readonly leftOut: Set<string> = new Set();
  readonly #cleanup = new AsyncDisposableStack();
  readonly #sharedSubjects = new Map<SubjectName, Promise<MeasuredSubject>>();

  constructor(options: L4RunOptions) {
    this.options = options;
  }

  /** Returns the selected subjects that relay to the backend. A subject starts on the first call and runs until the run is disposed. */
  async sharedSubjects(backend: BackendName): Promise<MeasuredSubject[]> {
    const subjects: MeasuredSubject[] = [];
    for (const name of this.options.subjects) {
      const starting = this.#sharedSubjects.get(name) ?? this.startSubject(name, this.#cleanup);
      this.#sharedSubjects.set(name, starting);
      const subject = await starting;
      if (await this.#relaysTo(subject, backend)) subjects.push(subject);
    }
    return subjects;
  }

  /** Starts the named subjects and returns the subjects that relay to the backend. Disposing `during` stops all of them. */
  async startSubjects(
    names: readonly StartableSubjectName[],
    { backend, during }: { readonly backend: BackendName; readonly during: AsyncDisposableStack },
  ): Promise<MeasuredSubject[]> {
    const subjects: MeasuredSubject[] = [];
    for (const name of names) {
      const subject = await this.startSubject(name, during);
      if (await this.#relaysTo(subject, backend)) subjects.push(subject);
    }
    return subjects;
  }

  /** Starts a subject. Disposing `during` stops the subject. */
  async startSubject(
    name: StartableSubjectName,
    during: AsyncDisposableStack,
    options: { readonly isInspected?: boolean } = {},
  ): Promise<MeasuredSubject> {
    const { backends, profileDirectory } = this.options;
    const profiling = profileDirectory === undefined ? {} : { profileDirectory };
    const subject = during.use(await startSubject(name, backends.ports, { ...profiling, ...options }));
    this.descriptions.set(name, subject.description);
    return new MeasuredSubject(subject);
  }

  leaveOut(note: string): void {
    if (!this.leftOut.has(note)) logProgress(`left out: ${note}`);
    this.leftOut.add(note);
  }

  /** Reports whether the subject supports the backend. If so, verifies that the subject relays; if not, notes the reason. */
  async #relaysTo(subject: MeasuredSubject, backend: BackendName): Promise<boolean> {
    const { name, unsupported } = subject.subject;
    const reason = unsupported?.[backend];
    if (reason === undefined) {
      await subject.verifyRelay(backend);
      return true;
    }
    this.leaveOut(`${name} with the backend "${backend}": ${reason}`);
    return false;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup.disposeAsync();
  }
}
