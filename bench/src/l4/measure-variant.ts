import type { ScenarioResult } from '../report/result.ts';
import type { Load } from './load.ts';
import { playLoad } from './rounds.ts';
import type { Stage } from './stage.ts';

export type VariantOptions = {
  readonly variant: 'weir-limits' | 'weir-2-workers';
  readonly title: string;
  readonly loads: readonly Load[];
  /** How many times the figure of Weir with one worker and no limits. */
  readonly most: number;
};

/** Weir set up in another way, beside Weir as it is measured elsewhere. */
export async function measureVariant(
  stage: Stage,
  { variant, title, loads, most }: VariantOptions,
): Promise<ScenarioResult[]> {
  if (!stage.options.subjects.includes('weir')) return [];
  const results: ScenarioResult[] = [];
  for (const load of loads) {
    const { backend } = load;
    const played = await playLoad(stage, load, {
      // Alone either of them says nothing.
      cast: async (during) => {
        const both = await stage.fresh(['weir', variant], { backend, during });
        return both.length === 2 ? both : [];
      },
      bars: { weir: most },
      judged: variant,
      title: `${title}: ${load.title}`,
    });
    results.push(...played);
  }
  return results;
}
