import type { Sight } from './sight.ts';

/** Whoever sent a request, and what the rights are. */
export interface Caller {
  /** Null: nobody was asked who they are. */
  readonly name: string | null;
  /** Equal for the same person, also of two requests. */
  readonly key: string;
  /** What can be seen, of these namespaces. */
  sight(namespaces: Iterable<string>): Promise<Sight>;
  sees(namespace: string): Promise<boolean>;
  seesAll(): Promise<boolean>;
  /** Whether Suspensions (or the one of this name) may be made or lifted. */
  may(verb: SuspensionVerb, name?: string): Promise<boolean>;
}

export type SuspensionVerb = 'create' | 'delete';

/** Without authentication: whoever reaches this console is on this machine. */
export const ANYBODY: Caller = {
  name: null,
  key: '',
  sight: async () => ({ kind: 'all' }),
  sees: async () => true,
  seesAll: async () => true,
  may: async () => true,
};
