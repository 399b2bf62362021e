import { logProgress } from '../report/run-metadata.ts';
import type { Subject, SubjectName } from '../subjects/subject.ts';
import { MeasuredSubject, type RelayChecks } from './measured-subject.ts';
import type { ComparisonOptions } from './options.ts';

export type ComparisonRunOptions<Backend extends string, Name extends SubjectName> = Pick<
  ComparisonOptions<Name>,
  'rounds' | 'seconds' | 'subjects' | 'profileDirectory'
> & {
  readonly signal: AbortSignal;
  /** Starts a subject that relays at least to `backend`, or to all backends if `backend` is absent. */
  readonly start: (name: Name, options: StartOptions<Backend>) => Promise<Subject<Backend>>;
  readonly checks: RelayChecks<Backend>;
  /** The backends without a proxy: a subject whose process is the backend. */
  readonly direct: Subject<Backend>;
};

export type StartOptions<Backend extends string> = {
  readonly backend?: Backend;
  /** Where Weir writes CPU profiles. */
  readonly profileDirectory?: string;
  /** True if Weir is started with an inspector. */
  readonly isInspected?: boolean;
};

/** The options, backends and subjects that all scenarios of one run share. */
export class ComparisonRun<Backend extends string, Name extends SubjectName> implements AsyncDisposable {
  readonly options: ComparisonRunOptions<Backend, Name>;
  readonly descriptions: Map<SubjectName, string> = new Map();
  readonly leftOut: Set<string> = new Set();
  readonly #cleanup = new AsyncDisposableStack();
  readonly #sharedSubjects = new Map<SubjectName, Promise<MeasuredSubject<Backend>>>();

  constructor(options: ComparisonRunOptions<Backend, Name>) {
    this.options = options;
  }

  /** Returns the selected subjects that relay to the backend. A subject starts on the first call and runs until the run is disposed. */
  async sharedSubjects(backend: Backend): Promise<MeasuredSubject<Backend>[]> {
    const subjects: MeasuredSubject<Backend>[] = [];
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
    names: readonly Name[],
    { backend, during }: { readonly backend: Backend; readonly during: AsyncDisposableStack },
  ): Promise<MeasuredSubject<Backend>[]> {
    const subjects: MeasuredSubject<Backend>[] = [];
    for (const name of names) {
      const subject = await this.startSubject(name, during, { backend });
      if (await this.#relaysTo(subject, backend)) subjects.push(subject);
    }
    return subjects;
  }

  /** Starts a subject. Disposing `during` stops the subject. */
  async startSubject(
    name: Name,
    during: AsyncDisposableStack,
    options: Omit<StartOptions<Backend>, 'profileDirectory'> = {},
  ): Promise<MeasuredSubject<Backend>> {
    const { start, checks, profileDirectory } = this.options;
    const profiling = profileDirectory === undefined ? {} : { profileDirectory };
    const subject = during.use(await start(name, { ...profiling, ...options }));
    this.descriptions.set(name, subject.description);
    return new MeasuredSubject(subject, checks);
  }

  leaveOut(note: string): void {
    if (!this.leftOut.has(note)) logProgress(`left out: ${note}`);
    this.leftOut.add(note);
  }

  /** Reports whether the subject supports the backend. If so, verifies that the subject relays; if not, notes the reason. */
  async #relaysTo(subject: MeasuredSubject<Backend>, backend: Backend): Promise<boolean> {
    const { name, unsupported } = subject.subject;
    const reason = unsupported?.[backend];
    if (reason === undefined) {
      await subject.verifyRelay(backend);
      return true;
    }
    this.leaveOut(`${name} in the loads of "${backend}": ${reason}`);
    return false;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup.disposeAsync();
  }
}
