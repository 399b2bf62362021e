import type { Heartbeat } from '@weir/model';

const VERSION = 2;

export type HeartbeatState = Omit<Heartbeat, 'listeners'>;

/** All but the listeners, as JSON: those lie beside it, because they are many and seldom change. */
export function encodeState({ listeners: _beside, ...state }: Heartbeat): string {
  return JSON.stringify({ v: VERSION, ...state });
}

/** Undefined when it is gone, or of a version that this one does not know. */
export function decodeState(text: string | null): HeartbeatState | undefined {
  if (text === null) return undefined;
  try {
    const { v, ...state } = JSON.parse(text);
    const isState = v === VERSION && typeof state.node === 'string' && Number.isSafeInteger(state.life);
    return isState ? state : undefined;
  } catch {
    return undefined;
  }
}
