import type { ListenerReport } from '@weir/model';
import type { ListenerState } from './opening.ts';

type Said = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;

const SILENT: Said = { bound: false, listening: false, error: null };

/** What is said of a listener in this state; `isStillClosing`: some worker may not have closed it yet. */
export function saidOf(
  state: ListenerState | undefined,
  { isStillClosing }: { readonly isStillClosing: boolean },
): Said {
  switch (state?.kind) {
    case 'open': {
      const { isConfirmed, listening } = state.opening;
      return { bound: isConfirmed, listening: isConfirmed && listening.size > 0, error: null };
    }
    case 'held':
      return { ...SILENT, bound: true, listening: isStillClosing };
    case 'failed':
      return { ...SILENT, error: state.error };
    case 'busy':
    case undefined:
      return SILENT;
  }
}
