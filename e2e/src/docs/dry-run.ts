// `weir translate` of manifests that a page shows, as its reader would run it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';

const WEIR_COMMAND = fileURLToPath(new URL('../../../packages/cli/bin/weir.js', import.meta.url));

interface TranslateProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: string;
  readonly message: string;
}

/** The errors in these manifests; warnings, such as that there are no pods, are none. */
export async function translateErrors(
  manifests: readonly string[],
  ...options: string[]
): Promise<readonly TranslateProblem[]> {
  await using directory = temporaryDirectory('dry-run');
  for (const [index, text] of manifests.entries()) writeFileSync(join(directory.path, `${index}.yaml`), text);
  const run = await spawnProcess({
    command: process.execPath,
    args: [WEIR_COMMAND, 'translate', '-f', directory.path, '--classless', '-o', 'json', ...options],
    mayExit: true,
  });
  const { code } = await run.exited;
  if (code === 2) throw new Error(run.output());
  const { problems } = JSON.parse(run.stdout()) as { readonly problems: readonly TranslateProblem[] };
  return problems.filter(({ severity }) => severity === 'error');
}
