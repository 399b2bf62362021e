import type { Heartbeat } from '@weir/model';

const VERSION = 1;

/** All but the listeners, as JSON: those lie beside it, because they are long and seldom change. */
export function encodeHeartbeat({ listeners: _beside, ...state }: Heartbeat): string {
  return JSON.stringify({ v: VERSION, ...state });
}

/** Out of the hash of a proxy; undefined when it is gone, or of a version that this one does not know. */
export function decodeHeartbeat({ state, listeners }: Readonly<Record<string, string>>): Heartbeat | undefined {
  if (state === undefined || listeners === undefined) return undefined;
  try {
    const { v, ...rest } = JSON.parse(state);
    const isHeartbeat = v === VERSION && typeof rest.node === 'string' && Number.isSafeInteger(rest.life);
    return isHeartbeat ? { ...rest, listeners: JSON.parse(listeners) } : undefined;
  } catch {
    return undefined;
  }
}
