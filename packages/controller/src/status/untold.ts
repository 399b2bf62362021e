/**
 * Of which Services it has to be looked at whether they say what they should, each by one writer at a time. Keys are those of the source.
 * Times are of a clock that never jumps, in milliseconds.
 */
export class Untold {
  /** In the order in which they came. */
  readonly #open = new Set<string>();
  readonly #underWay = new Set<string>();
  /** Could not be told. They come last, or a few would keep all others waiting. */
  readonly #failed = new Set<string>();
  /** Those of them whose turn is still to come. */
  readonly #retries = new Set<string>();
  /** Changed while they were told: whoever watches them is about to say how. */
  readonly #changed = new Set<string>();
  /** When they are looked at whatever happens, the earliest first. */
  readonly #dueAt = new Map<string, number>();

  /** Something about it is another than before: also while it is being told. */
  open(key: string): void {
    if (!this.#failed.has(key)) this.#open.add(key);
  }

  /** It is gone. */
  forget(key: string): void {
    for (const keys of [this.#open, this.#failed, this.#retries, this.#changed, this.#dueAt]) keys.delete(key);
  }

  /** A new turn: what is due by now is open, and what failed is tried once more. */
  begin(now: number): void {
    for (const key of this.#changed) this.open(key);
    this.#changed.clear();
    for (const [key, at] of this.#dueAt) {
      if (at > now) break;
      this.#dueAt.delete(key);
      this.open(key);
    }
    this.#retries.clear();
    for (const key of this.#failed) this.#retries.add(key);
  }

  /** Who is next; one of the methods below says what became of it. Undefined: nobody, in this turn. */
  next(): string | undefined {
    for (const key of this.#open) {
      if (this.#underWay.has(key)) continue;
      this.#open.delete(key);
      this.#underWay.add(key);
      return key;
    }
    for (const key of this.#retries) {
      if (this.#underWay.has(key)) continue;
      this.#retries.delete(key);
      // What comes while it is tried is looked at after it.
      this.#failed.delete(key);
      this.#underWay.add(key);
      return key;
    }
    return undefined;
  }

  /** `isStill`: it and its view are what was told; else it is open again. */
  settled(key: string, { isStill }: { readonly isStill: boolean }): void {
    this.#end(key);
    if (isStill) this.#open.delete(key);
  }

  /** To be looked at again then, and before if it changes. `at` never goes back from one call to the next. */
  dueAt(key: string, at: number): void {
    this.#dueAt.delete(key);
    this.#dueAt.set(key, at);
  }

  /** With the next turn. */
  changed(key: string): void {
    this.#end(key);
    this.#changed.add(key);
  }

  failed(key: string): void {
    this.#end(key);
    this.#open.delete(key);
    this.#failed.add(key);
  }

  #end(key: string): void {
    this.#underWay.delete(key);
    this.#dueAt.delete(key);
  }
}
