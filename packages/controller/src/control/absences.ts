import type { Absence } from '@weir/model';

/** A node that reboots is back before. */
const SILENT_AFTER_MS = 30_000;
const LOST_AFTER_MS = 300_000;

/** What of the fleet is known at a moment. Times are of a clock that never jumps, in milliseconds. */
export interface Hearing {
  /** Names of the nodes that should have a proxy. */
  readonly nodes: Iterable<string>;
  /** Names of those of which one was heard. */
  readonly heard: ReadonlySet<string>;
  readonly now: number;
  /** Names of nodes of which one was heard at some time, by whoever led; only of interest when nothing was listened to before. */
  readonly known?: ReadonlySet<string>;
}

/** For how long which nodes have been without a proxy that we hear. */
export class Absences {
  /** By name, since when. */
  readonly #since = new Map<string, number>();
  /**
   * Names of those that had a proxy and were without when the listening began: they may have been for long, so nothing new is put
   * there. Of a fleet that starts for the first time there are none, else all would be put on whoever is first.
   */
  #fromTheStart: ReadonlySet<string> | undefined;
  #absent: ReadonlyMap<string, Absence> = new Map();
  #listenedAt: number | undefined;
  #isInterrupted = false;

  /** The same map until somebody comes, goes, or has been away for long. */
  get absent(): ReadonlyMap<string, Absence> {
    return this.#absent;
  }

  listened({ nodes, heard, now, known = new Set() }: Hearing): void {
    const deafMs = this.#isInterrupted ? now - (this.#listenedAt ?? now) : 0;
    this.#isInterrupted = false;
    this.#listenedAt = now;
    for (const [name, since] of this.#since) this.#since.set(name, since + deafMs);
    const missing = new Set([...nodes].filter((name) => !heard.has(name)));
    for (const name of this.#since.keys()) if (!missing.has(name)) this.#since.delete(name);
    for (const name of missing) if (!this.#since.has(name)) this.#since.set(name, now);
    this.#fromTheStart = new Set([...(this.#fromTheStart ?? known)].filter((name) => missing.has(name)));
    this.#set(
      [...this.#since].flatMap(([name, since]) =>
        absenceAfter(now - since, this.#fromTheStart?.has(name) ? 'silent' : undefined).map((each) => [name, each]),
      ),
    );
  }

  /** The store does not answer, so nobody can be heard: the time until it does counts for nobody. */
  interrupted(): void {
    this.#isInterrupted = true;
  }

  #set(entries: readonly (readonly [string, Absence])[]): void {
    const isSame =
      entries.length === this.#absent.size && entries.every(([name, absence]) => this.#absent.get(name) === absence);
    if (!isSame) this.#absent = new Map(entries);
  }
}

function absenceAfter(ms: number, before: Absence | undefined): readonly Absence[] {
  if (ms >= LOST_AFTER_MS) return ['lost'];
  if (ms >= SILENT_AFTER_MS) return ['silent'];
  return before === undefined ? [] : [before];
}
