import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/** A password, token or key on its way through the process: logs, JSON and error messages never show it by accident. */
export class Secret {
  static {
    // Not a method: a computed name has no declared type under `isolatedDeclarations`.
    Object.defineProperty(Secret.prototype, inspect.custom, { value: () => REDACTED });
  }

  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself: call it only where it leaves for the peer that needs it. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }
}
