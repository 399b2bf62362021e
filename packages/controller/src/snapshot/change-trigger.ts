import { parseTimestamp } from './formats.ts';

const CHANGE_TRIGGER_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';

const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
/** Of Kubernetes itself: in a slice that somebody made by hand the time is whatever they wrote. */
const ENDPOINT_SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';

interface RawObject {
  readonly metadata?: {
    readonly annotations?: Readonly<Record<string, unknown>> | null;
    readonly labels?: Readonly<Record<string, unknown>> | null;
    readonly creationTimestamp?: unknown;
  } | null;
}

/**
 * When the pod or Service changed for which an EndpointSlice was written, milliseconds since the epoch; undefined: it does not say.
 * Kubernetes tells it to the second, and takes it away when a later write has another cause.
 */
export function changeTriggerTimeOf(raw: unknown): number | undefined {
  const { metadata } = raw as RawObject;
  if (metadata?.labels?.[MANAGED_BY_LABEL] !== ENDPOINT_SLICE_CONTROLLER) return undefined;
  return timeOf(metadata.annotations?.[CHANGE_TRIGGER_ANNOTATION]);
}

/** When the API server made the object, which nobody else can write; milliseconds since the epoch. */
export function creationTimeOf(raw: unknown): number | undefined {
  return timeOf((raw as RawObject).metadata?.creationTimestamp);
}

function timeOf(text: unknown): number | undefined {
  return typeof text === 'string' ? parseTimestamp(text) : undefined;
}
