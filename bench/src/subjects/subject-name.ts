export const subjectNames = ['weir', 'haproxy', 'pipe'] as const;

export type SubjectName = (typeof subjectNames)[number];

export function isSubjectName(name: string): name is SubjectName {
  return (subjectNames as readonly string[]).includes(name);
}
