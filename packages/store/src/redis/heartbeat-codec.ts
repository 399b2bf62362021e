import type { Heartbeat } from '@weir/model/data-plane';

const VERSION = 2;

export type HeartbeatState = Omit<Heartbeat, 'listeners'>;

/** All but the listeners, as JSON: those lie beside it, because they are many and seldom change. */
export function encodeState({ listeners: _beside, ...state }: Heartbeat): string {
  return JSON.stringify({ v: VERSION, ...state });
}

/** Undefined when it is of a version that this one does not know, or damaged. */
export function decodeState(text: string): HeartbeatState | undefined {
  const { v, ...state } = recordOf(text);
  const isState = v === VERSION && typeof state.node === 'string' && Number.isSafeInteger(state.life);
  return isState ? (state as unknown as HeartbeatState) : undefined;
}

/**
 * What is known of a proxy that beats, and says nothing that `decodeState` reads: that it is there. For dead it must not be taken, since
 * it serves by the table, which has versions of its own.
 */
export function strangerOf({ node, life }: Pick<Heartbeat, 'node' | 'life'>, text: string): Heartbeat {
  const { v, version } = recordOf(text);
  const format = typeof v === 'number' ? `format ${v}` : 'a format without a number';
  return {
    node,
    life,
    version: typeof version === 'string' ? version : 'unknown',
    startedAt: 0,
    draining: false,
    addresses: [],
    applied: null,
    cutoffSequence: 0,
    listeners: [],
    workers: 0,
    connections: 0,
    unreadable: `its heartbeat is of ${format}, and this version knows only format ${VERSION}: what is published for node "${node}" stays so, and nothing new is; bring the proxy or the controller to the version of the other`,
  };
}

function recordOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
