import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';

const SCRIPT_NAMES = [
  'claim-leader',
  'open-epoch',
  'publish-table',
  'begin-life',
  'beat-proxy',
  'flush-usage',
  'seed-usage',
  'fold-usage',
  'fold-services',
  'forget-nodes',
  'fold-series',
  'move-sum',
  'put-cutoff',
  'remove-cutoff',
  'complete-cutoffs',
  'exchange-leases',
  'keep-lease-member',
] as const;
export type ScriptName = (typeof SCRIPT_NAMES)[number];

/** The scripts that begin with the functions of `points.lua`. */
const SCRIPTS_WITH_POINTS: ReadonlySet<string> = new Set<ScriptName>(['flush-usage', 'fold-series', 'move-sum']);

/** Defines the scripts of `src/lua` as commands of the client. */
export function defineScripts(redis: Redis): void {
  for (const name of SCRIPT_NAMES) redis.defineCommand(name, { lua: sourceOf(name) });
}

/** A command that reads one key: its name, the key, and its other arguments. */
export type ReadCommand = readonly [name: string, key: string, ...args: readonly (string | number)[]];

/** Runs read commands at one moment, also while Redis is full. Returns the replies as Redis sends them: a hash is a list. */
export async function readTogether(redis: Redis, commands: readonly ReadCommand[]): Promise<unknown[]> {
  const keys = commands.map(([, key]) => key);
  const args = commands.flatMap(([name, , ...rest]) => [name, rest.length, ...rest]);
  // Sends EVAL_RO, because Redis refuses EVALSHA to users who may only read the keys, and ioredis has no command for EVALSHA_RO.
  return (await redis.call('EVAL_RO', sourceOf('read-together'), keys.length, ...keys, ...args)) as unknown[];
}

/** Runs a script that `defineScripts` has defined. The header of the script describes the result. */
export function runScript(
  redis: Redis,
  name: ScriptName,
  { keys, args }: { readonly keys: readonly string[]; readonly args: readonly (string | number)[] },
): Promise<unknown> {
  type Script = (count: number, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;
  // Passes lists, because spreading the arguments of a large ledger would overflow the stack. ioredis flattens the lists.
  return (redis as unknown as Record<ScriptName, Script>)[name](keys.length, keys, args);
}

const sources = new Map<string, string>();

function sourceOf(name: ScriptName | 'read-together'): string {
  let source = sources.get(name);
  if (source === undefined) {
    source = (SCRIPTS_WITH_POINTS.has(name) ? readLua('points') : '') + readLua(name);
    sources.set(name, source);
  }
  return source;
}

function readLua(name: string): string {
  return readFileSync(join(packageRoot(), 'src', 'lua', `${name}.lua`), 'utf8');
}

/** Returns the root folder of this package. Code in `dist` also reads the scripts from `src`, because the compiler does not copy them. */
function packageRoot(): string {
  const path = findPackageJSON(import.meta.url);
  if (path === undefined) throw new Error(`cannot find the Lua scripts: ${import.meta.url} is not in a package`);
  return dirname(path);
}
