/**
 * The world failed: something that no change of a tenant's object can cause. `Code` is the closed union of the package that
 * throws, so that whoever handles it can switch exhaustively; a user's wrong object is a `Problem`, never one of these.
 */
export class WeirError<Code extends string = string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The command line or the environment is wrong: the process ends with exit code 2, and its message needs no stack. */
export class UsageError extends WeirError<'USAGE'> {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('USAGE', message, options);
  }
}
