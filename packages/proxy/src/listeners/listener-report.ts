import type { ListenerReport } from '@weir/model';
import type { ListenerState } from './opening.ts';

type Outcome = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;

const SILENT: Outcome = { bound: false, listening: false, error: null };

/** What is said of a listener in this state; `isStillClosing`: some worker may not have closed it yet. */
export function outcomeOf(state: ListenerState | undefined, isStillClosing: boolean): Outcome {
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
