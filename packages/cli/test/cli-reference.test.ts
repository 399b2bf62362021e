// Generates docs/cli.md from the help texts: `UPDATE_GOLDEN=1` rewrites the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { golden } from '@weir/testkit';
import { runWeirInProcess } from './fixtures/weir-in-process.ts';

const INTRODUCTION = `# Command line reference

This page is generated from the help texts of \`weir\`. In a checkout, run the command with \`npx weir\`. The images contain
\`weir\` as well, for example for \`kubectl exec -n weir-system deployment/weir-controller -- weir doctor\`. Installed as
\`kubectl-weir\` on the PATH, the command is also a kubectl plugin: \`kubectl weir get services\`.

\`-o json\` and \`-o yaml\` print the data of a command without abbreviations; scripts should not read the tables.
`;

test('docs/cli.md contains the help text of every command', async () => {
  const overview = await helpOf([]);
  const commands = commandNames(overview);
  const sections = [`## weir\n\n${codeBlock(overview)}`];
  for (const command of commands) sections.push(`## weir ${command}\n\n${codeBlock(await helpOf([command]))}`);
  assert.ok(commands.length >= 10, commands.join(', '));
  golden(new URL('../../../docs/cli.md', import.meta.url), [INTRODUCTION, ...sections].join('\n'));
});

async function helpOf(command: readonly string[]): Promise<string> {
  const { code, stdout } = await runWeirInProcess([...command, '--help']);
  assert.equal(code, 0);
  return stdout;
}

/** Returns the names of the commands in the order of the overview, without commander's own `help`. */
function commandNames(overview: string): string[] {
  const [, list = ''] = /\nCommands:\n([\s\S]*?)\n\n/.exec(overview) ?? [];
  const names = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help');
}

function codeBlock(text: string): string {
  const lines = text
    .trim()
    .split('\n')
    .map((line) => line.trimEnd());
  return `\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`;
}
