import type { ListenerConfig } from '../worker/messages.ts';

/** One door, and which workers have opened it. */
export interface ListenerOpening {
  readonly listener: ListenerConfig;
  readonly pendingWorkers: Set<number>;
  readonly listeningWorkers: Set<number>;
  /** All who were asked have answered once: from here on the address may be published. */
  isConfirmed: boolean;
  readonly onSettled: () => void;
}

/** What a listener has become. */
export type ListenerState =
  | { readonly kind: 'open'; readonly opening: ListenerOpening }
  /** Looked at again at `checkAt` (of a clock that never jumps): somebody else may have taken the port meanwhile. */
  | { readonly kind: 'held'; readonly checkAt: number }
  /** Somebody looks whether the port is free. `error`: what was found the last time; else null. */
  | { readonly kind: 'busy'; readonly error: string | null }
  | { readonly kind: 'failed'; readonly retryAt: number; readonly error: string };
