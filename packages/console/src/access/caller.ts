import type { AuthorizationScope } from './sight.ts';

/** Whoever sent a request, and what the rights are. */
export interface Caller {
  /** Null: nobody was asked who they are. */
  readonly name: string | null;
  /** Equal for the same person, also of two requests. */
  readonly key: string;
  /** What can be seen, of these namespaces. */
  scopeWithin(namespaces: Iterable<string>): Promise<AuthorizationScope>;
  canViewNamespace(namespace: string): Promise<boolean>;
  canViewFleet(): Promise<boolean>;
  /** Whether Suspensions (or the one of this name) may be made or lifted. */
  canChangeSuspensions(verb: SuspensionVerb, name?: string): Promise<boolean>;
}

export type SuspensionVerb = 'create' | 'delete';

/** Without authentication: whoever reaches this console is on this machine. */
export const ANONYMOUS_CALLER: Caller = {
  name: null,
  key: '',
  scopeWithin: async () => ({ kind: 'all' }),
  canViewNamespace: async () => true,
  canViewFleet: async () => true,
  canChangeSuspensions: async () => true,
};
