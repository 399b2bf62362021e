import type { ServiceCount } from './proxy-self-view.ts';
import type { Reading } from './reading.ts';
import { refusals, type ServiceName, services } from './services.ts';

/** Of connections that were given to the Service. */
const given = [
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'connect-failed',
  'connect-timeout',
  'idle-timeout',
  'drained',
];
/** Every connection that the kernel accepted has exactly one outcome, and nothing ended badly without a cause. */
export function checkConnections(name: ServiceName, { view, tallies, workersEnded }: Reading): string[] {
  const count = view.services.find((service) => service.name === name);
  if (count === undefined) return ['the proxy does not count it'];
  const { established, ends, unseen } = tallies[name];
  const { active, counters } = count;
  const all = sum(count, Object.keys(count.outcomes));
  const surely = sum(count, given);
  const perhaps = all - sum(count, refusals);
  const internal = count.outcomes.internal ?? 0;
  const findings: string[] = [];
  if (established === 0) findings.push('no client has ever connected');
  if (active !== 0) findings.push(`${active} are still active`);
  if (ends.stuck > 0) findings.push(`${ends.stuck} clients were left waiting`);
  if (ends.foreign > 0) findings.push(`${ends.foreign} clients got a byte that was not theirs`);
  if (counters.connections < surely || counters.connections > perhaps) {
    findings.push(`${counters.connections} connections, and outcomes for ${surely} to ${perhaps}`);
  }
  if (all > established || all < established - unseen) {
    const least = established - unseen;
    findings.push(
      `${all} outcomes, and clients connected ${least === established ? '' : `${least} to `}${established} times`,
    );
  }
  if (internal > 0 && workersEnded === 0) findings.push(`${internal} ended as "internal", and no worker was ended`);
  return [
    ...findings,
    ...checkGoodEnds(name, { completed: count.outcomes.completed ?? 0, clean: ends.clean, internal }),
  ];
}

/** What was well for the client was well for the proxy; and the other way round, where no client ends anything by RST. */
function checkGoodEnds(
  name: ServiceName,
  { completed, clean, internal }: { readonly completed: number; readonly clean: number; readonly internal: number },
): string[] {
  const { isEcho, character } = services[name];
  if (!isEcho) return [];
  const tooFew = completed < clean - internal;
  const tooMany = character === 'calm' && clean < completed - internal;
  return tooFew || tooMany ? [`${completed} completed, and ${clean} clients saw FIN both ways`] : [];
}

function sum({ outcomes }: ServiceCount, names: readonly string[]): number {
  return names.reduce((total, outcome) => total + (outcomes[outcome] ?? 0), 0);
}
