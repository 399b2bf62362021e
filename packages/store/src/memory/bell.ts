/** Wakes everybody who waits. It carries nothing: who is woken looks at the state. */
export class Bell {
  readonly #sleepers = new Set<() => void>();

  ring(): void {
    const sleepers = [...this.#sleepers];
    this.#sleepers.clear();
    for (const wake of sleepers) wake();
  }

  /** Resolves at the next ring, or when the signal aborts. */
  rung(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = (): void => {
        this.#sleepers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#sleepers.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
