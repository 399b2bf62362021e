import type { ScenarioResult } from '../report/result.ts';
import type { Load } from './load.ts';
import { measureLoad } from './rounds.ts';
import type { L4Run } from './stage.ts';

export type VariantOptions = {
  readonly variant: 'weir-limits' | 'weir-2-workers';
  readonly title: string;
  readonly loads: readonly Load[];
  /** How many times the figure of Weir with one worker and no limits. */
  readonly maxRatio: number;
};

/** Weir set up in another way, beside Weir as it is measured elsewhere. */
export async function measureVariant(
  stage: L4Run,
  { variant, title, loads, maxRatio }: VariantOptions,
): Promise<ScenarioResult[]> {
  if (!stage.options.subjects.includes('weir')) return [];
  const results: ScenarioResult[] = [];
  for (const load of loads) {
    const { backend } = load;
    const played = await measureLoad(stage, load, {
      // Alone either of them says nothing.
      startSubjects: async (during) => {
        const both = await stage.startSubjects(['weir', variant], { backend, during });
        return both.length === 2 ? both : [];
      },
      bars: { weir: maxRatio },
      judgedSubject: variant,
      title: `${title}: ${load.title}`,
    });
    results.push(...played);
  }
  return results;
}
