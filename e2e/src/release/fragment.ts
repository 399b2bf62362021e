/** A file of .changeset, as `changeset status --output` tells it. */
export interface Changeset {
  readonly id: string;
  readonly summary: string;
  readonly releases: readonly { readonly name: string; readonly type: Bump | 'none' }[];
}

export type Bump = 'major' | 'minor' | 'patch';

const BUMPS: readonly Bump[] = ['major', 'minor', 'patch'];

/** The gravest of what a fragment says of the packages that it names; undefined when none of them is released for it. */
export function highestBump({ releases }: Changeset): Bump | undefined {
  return BUMPS.find((bump) => releases.some(({ type }) => type === bump));
}
