// The part of the model that `weir suspend` loads. Each further module would delay the cut-off.
export { formatDuration, parseDuration } from './duration.ts';
export type { SuspensionTarget } from './snapshot.ts';
export {
  isInForce,
  type Suspension,
  type SuspensionOrigin,
  type SuspensionSubject,
  suspensionFor,
} from './suspension.ts';
