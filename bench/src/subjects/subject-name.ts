/** Who may be asked to take part. */
export const SELECTABLE_SUBJECTS = ['weir', 'haproxy', 'nginx', 'envoy', 'pipe'] as const;

export type SelectableSubjectName = (typeof SELECTABLE_SUBJECTS)[number];

/** Those that a scenario adds by itself; `direct`: nobody in between. */
export type SubjectName = SelectableSubjectName | 'weir-limits' | 'weir-2-workers' | 'direct';

export function isSelectableSubject(name: string): name is SelectableSubjectName {
  return (SELECTABLE_SUBJECTS as readonly string[]).includes(name);
}
