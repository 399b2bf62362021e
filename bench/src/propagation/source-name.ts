/** Where the controller has its objects from. */
export const propagationSourceTexts = {
  memory: "a fake in the controller's memory",
  api: 'a real kube-apiserver, with 10 Services',
} as const;

export type PropagationSource = keyof typeof propagationSourceTexts;

export const propagationSources: readonly PropagationSource[] = Object.keys(
  propagationSourceTexts,
) as PropagationSource[];
