/** Who may be asked to take part. */
export const subjectNames = ['weir', 'haproxy', 'nginx', 'envoy', 'pipe'] as const;

export type ChosenName = (typeof subjectNames)[number];

/** Those that a scenario adds by itself; `direct`: nobody in between. */
export type SubjectName = ChosenName | 'weir-limits' | 'weir-2-workers' | 'direct';

export function isSubjectName(name: string): name is ChosenName {
  return (subjectNames as readonly string[]).includes(name);
}
