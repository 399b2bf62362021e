// Runs every command of docs/quickstart.md on a cluster without a release. With UPDATE_GOLDEN=1, writes the outputs to the page.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { insideSandbox, programPath, requireProgram } from '@weir/tools';
import { type ChartFleet, startChartFleet } from '../../src/cluster/chart-fleet.ts';
import { commandsIn, replaceOutputs, runLine } from '../../src/docs/console-transcript.ts';

const root = new URL('../../../', import.meta.url);
const file = new URL('docs/quickstart.md', root);
const requirement = { ...requireProgram('redis', 'kubernetes', 'nodes', 'images', 'helm'), ...insideSandbox() };

describe('docs/quickstart.md', { ...requirement, timeout: 300_000 }, () => {
  let fleet: ChartFleet;
  before(async () => {
    fleet = await startChartFleet({ nodes: 2 });
    // Removes the role from the nodes, because nodes have no role until an operator labels them.
    await fleet.kubectl('label', 'node', '--all', 'role-');
  });
  after(() => fleet?.close());

  test('shows the output of its commands', async () => {
    const page = readFileSync(file, 'utf8');
    const folders = (['helm', 'kubectl'] as const).map((name) => dirname(programPath(name)));
    const env = { ...process.env, ...fleet.env, PATH: [...folders, process.env.PATH].join(':') };
    const printed: string[] = [];
    for (const { line, output } of commandsIn(page)) {
      const now = await runLine(line, { cwd: fileURLToPath(root), env });
      printed.push(now);
      if (process.env.UPDATE_GOLDEN !== '1') assert.equal(now, output, `$ ${line}`);
    }
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, replaceOutputs(page, printed));
  });
});
