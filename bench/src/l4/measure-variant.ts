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

/** Weir set up in another way, beside Weir as it is measured elsewhere. Both are fresh. */
export async function measureVariant(
  stage: Stage,
  { variant, title, loads, most }: VariantOptions,
): Promise<ScenarioResult[]> {
  if (!stage.options.subjects.includes('weir')) return [];
  await using during = new AsyncDisposableStack();
  const contenders = [await stage.extra('weir', during), await stage.extra(variant, during)];
  const results: ScenarioResult[] = [];
  for (const load of loads) {
    const ready = [];
    for (const contender of contenders) if (await stage.isReady(contender, load.backend)) ready.push(contender);
    if (ready.length < contenders.length) continue;
    const named = `${title}: ${load.title}`;
    results.push(...(await playLoad(stage, load, { contenders, bars: { weir: most }, judged: variant, title: named })));
  }
  return results;
}
