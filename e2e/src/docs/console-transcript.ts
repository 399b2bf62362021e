// Reads commands and their output from the `console` code blocks of a page. A line that starts with "$ " is a command. The lines after a
// command are its output.
import { spawnProcess } from '@weir/testkit';

export interface TranscriptCommand {
  readonly line: string;
  readonly output: string;
}

const CONSOLE_FENCE = /^```console\n(.*?)^```$/gms;

export function commandsIn(page: string): readonly TranscriptCommand[] {
  return [...page.matchAll(CONSOLE_FENCE)].flatMap(([, text = '']) => commandsOf(text));
}

function commandsOf(fence: string): readonly TranscriptCommand[] {
  return fence
    .split(/^(?=\$ )/m)
    .filter((part) => part !== '')
    .map((part) => {
      const end = part.indexOf('\n');
      return { line: part.slice(2, end), output: part.slice(end + 1) };
    });
}

/** Returns the page with the outputs of its commands replaced by `outputs`, in order. */
export function replaceOutputs(page: string, outputs: readonly string[]): string {
  const rest = outputs.values();
  return page.replaceAll(CONSOLE_FENCE, (_, text: string) => {
    const parts = commandsOf(text).map(({ line }) => `$ ${line}\n${rest.next().value ?? ''}`);
    return `\`\`\`console\n${parts.join('')}\`\`\``;
  });
}

/** Runs a command and returns stdout and stderr. Masks text that differs between runs. */
export async function runLine(
  line: string,
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const shell = await spawnProcess({
    command: 'bash',
    name: line,
    args: ['-c', `${line} 2>&1`],
    mayExit: true,
    ...options,
  });
  await shell.exited;
  return maskVaryingText(shell.stdout());
}

/** Replaces times, ages, quantities and generated name suffixes by `…`, and normalizes the width of columns with varying text. */
export function maskVaryingText(text: string): string {
  return narrowColumns(text)
    .replaceAll(/^level=INFO msg="found symbolic link.*\n/gm, '')
    .replaceAll(/^(LAST DEPLOYED: ).*/gm, '$1…')
    .replaceAll(/\b(web|weir-\w+)-[0-9a-z]{8,10}-[0-9a-z]{5}\b/g, '$1-…')
    .replaceAll(/(?<= )(?:\d+[dhms])+(?= *(?:\n|$))/g, '…')
    .replaceAll(/(?<= after )\d+(?= ms)/g, '…')
    .replaceAll(/\b10\.96\.\d+\.\d+\b/g, '10.96.…')
    .replaceAll(/[ \t]+$/gm, '');
}

const VARYING_TABLE = /^NAME .*(?:CLUSTER-IP|RECEIVED)/;

/** Separates the columns of tables with addresses or byte counts by three spaces, and replaces byte counts by `…`. */
function narrowColumns(text: string): string {
  if (!VARYING_TABLE.test(text)) return text;
  const narrow = text.replaceAll(/ {2,}/g, '   ');
  return narrow.includes('RECEIVED') ? narrow.replaceAll(/^(\S+ {3}\S+ {3})\d+ {3}\d+/gm, '$1…   …') : narrow;
}
