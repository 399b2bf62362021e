/** Where the controller has its objects from. */
export const PROPAGATION_SOURCE_DESCRIPTIONS = {
  memory: "a fake in the controller's memory",
  api: 'a real kube-apiserver, with 10 Services',
} as const;

export type PropagationSource = keyof typeof PROPAGATION_SOURCE_DESCRIPTIONS;

export const PROPAGATION_SOURCES: readonly PropagationSource[] = Object.keys(
  PROPAGATION_SOURCE_DESCRIPTIONS,
) as PropagationSource[];
