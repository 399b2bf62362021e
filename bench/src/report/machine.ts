import { cpus, release } from 'node:os';

/** What was measured on, in one line. */
export function describeMachine(): string {
  const all = cpus();
  const model = all[0]?.model.trim() ?? 'unknown processor';
  return `${all.length} × ${model}, Linux ${release()}, Node ${process.versions.node}`;
}
