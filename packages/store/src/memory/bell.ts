/** Wakes everybody who waits. It carries nothing: who is woken looks at the state. */
export class ChangeNotifier {
  readonly #waiters = new Set<() => void>();

  notify(): void {
    const sleepers = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of sleepers) wake();
  }

  /** Resolves at the next ring, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = (): void => {
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
