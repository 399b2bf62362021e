import type { Heartbeat } from '@weir/model/data-plane';

const HEARTBEAT_FORMAT = 2;

export type HeartbeatState = Omit<Heartbeat, 'listeners'>;

/** All but the listeners, as JSON: those lie beside it, because they are many and seldom change. */
export function encodeHeartbeatState({ listeners: _beside, ...state }: Heartbeat): string {
  return JSON.stringify({ v: HEARTBEAT_FORMAT, ...state });
}

/** Undefined when it is of a version that this one does not know, or damaged. */
export function decodeHeartbeatState(text: string): HeartbeatState | undefined {
  const { v, ...state } = parseRecord(text);
  const isState = v === HEARTBEAT_FORMAT && typeof state.node === 'string' && Number.isSafeInteger(state.life);
  return isState ? (state as unknown as HeartbeatState) : undefined;
}

/**
 * What is known of a proxy that beats, and says nothing that `decodeState` reads: that it is there. For dead it must not be taken, since
 * it serves by the table, which has versions of its own.
 */
export function unknownVersionHeartbeat({ node, life }: Pick<Heartbeat, 'node' | 'life'>, text: string): Heartbeat {
  const { v, version } = parseRecord(text);
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
    unreadable: `its heartbeat is of ${format}, and this version knows only format ${HEARTBEAT_FORMAT}: what is published for node "${node}" stays so, and nothing new is; bring the proxy or the controller to the version of the other`,
  };
}

function parseRecord(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
