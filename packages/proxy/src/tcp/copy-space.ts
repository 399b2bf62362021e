import { PrefixViews } from './views.ts';

/**
 * Room for the copies that writes work on. A write that the kernel takes at once leaves its copy free for the next one;
 * one that must wait keeps it for good, and a new room is made. So almost nothing is allocated while peers keep up, and
 * no waiting write ever shares its bytes with anybody.
 */
export class CopyBuffer {
  readonly #size: number;
  #memory: PrefixViews;

  constructor(size: number) {
    this.#size = size;
    this.#memory = new PrefixViews(size);
  }

  /** At most `size` bytes. The copy is good until the next `copy`, unless `keep` is called before that. */
  copy(bytes: Uint8Array): Uint8Array {
    const copy = this.#memory.first(bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** The last copy is still in use. */
  keep(): void {
    this.#memory = new PrefixViews(this.#size);
  }
}
