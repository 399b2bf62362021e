/**
 * The size that a page of a large reply should have. The time limit of a command applies to each page, so that a large table takes more
 * commands and does not exceed the limit.
 */
export const PAGE_BYTES = 1_000_000;

/**
 * Chooses how many items to request, so that a page has about `PAGE_BYTES`. Redis counts a page in items, and tenants determine the size of
 * an item.
 */
export class PageSize {
  readonly #max: number;
  #count: number;

  constructor({ first, max }: { readonly first: number; readonly max: number }) {
    this.#count = first;
    this.#max = max;
  }

  /** How many items the next page should have. */
  get count(): number {
    return this.#count;
  }

  /** Adapts the next page to the size of the last page. A page has at most twice as many items as the page before. */
  adapt({ items, bytes }: { readonly items: number; readonly bytes: number }): void {
    if (items === 0) return;
    const wanted = Math.floor((PAGE_BYTES * items) / Math.max(1, bytes));
    this.#count = Math.max(1, Math.min(wanted, 2 * this.#count, this.#max));
  }
}
