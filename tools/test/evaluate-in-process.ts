import { spawnProcess } from '@weir/testkit';

const index = new URL('../src/index.ts', import.meta.url);

export type Evaluation<T> = { readonly value: T; readonly progress: string };

/** Evaluates an expression with functions of src/index.ts in a new process. `progress` is everything that the process prints. */
export async function evaluateInProcess<T>(expression: string, env: NodeJS.ProcessEnv): Promise<Evaluation<T>> {
  const script = `
    import { findProgram, providePrograms, requireProgram } from '${index}';
    console.log(JSON.stringify(${expression}));`;
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    env: { ...process.env, WEIR_PROGRAMS: '', WEIR_REQUIRE: '', ...env },
    mayExit: true,
  });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(child.output());
  return { value: JSON.parse(child.stdout()) as T, progress: child.output() };
}
