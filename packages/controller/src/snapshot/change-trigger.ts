import { parseTimestamp } from './formats.ts';

const LAST_CHANGE_TRIGGER = 'endpoints.kubernetes.io/last-change-trigger-time';

/**
 * When the pod or Service changed for which an EndpointSlice was written, milliseconds since the epoch; undefined: it does not say.
 * Kubernetes tells it to the second, and takes it away when a later write has another cause.
 */
export function changeTriggerOf(raw: unknown): number | undefined {
  const { metadata } = raw as {
    readonly metadata?: { readonly annotations?: Readonly<Record<string, unknown>> | null } | null;
  };
  const text = metadata?.annotations?.[LAST_CHANGE_TRIGGER];
  return typeof text === 'string' ? parseTimestamp(text) : undefined;
}
