import type { ServiceView } from './proxy-self-view.ts';
import type { SoakResult } from './reading.ts';
import { REFUSED_OUTCOMES, SERVICES, type ServiceName } from './services.ts';

/** Of connections that were given to the Service. */
const ROUTED_OUTCOMES = [
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'connect-failed',
  'connect-timeout',
  'idle-timeout',
  'drained',
];
/** Every connection that the kernel accepted has exactly one outcome, and nothing ended badly without a cause. */
export function checkConnections(name: ServiceName, { view, clientTotals, endedWorkers }: SoakResult): string[] {
  const count = view.services.find((service) => service.name === name);
  if (count === undefined) return ['the proxy does not count it'];
  const { established, clientOutcomes, possiblyUnseen } = clientTotals[name];
  const { active, counters } = count;
  const all = sumOutcomes(count, Object.keys(count.outcomes));
  const surely = sumOutcomes(count, ROUTED_OUTCOMES);
  const perhaps = all - sumOutcomes(count, REFUSED_OUTCOMES);
  const internal = count.outcomes.internal ?? 0;
  const findings: string[] = [];
  if (established === 0) findings.push('no client has ever connected');
  if (active !== 0) findings.push(`${active} are still active`);
  if (clientOutcomes.stuck > 0) findings.push(`${clientOutcomes.stuck} clients were left waiting`);
  if (clientOutcomes.foreign > 0) findings.push(`${clientOutcomes.foreign} clients got a byte that was not theirs`);
  if (counters.connections < surely || counters.connections > perhaps) {
    findings.push(`${counters.connections} connections, and outcomes for ${surely} to ${perhaps}`);
  }
  if (all > established || all < established - possiblyUnseen) {
    const least = established - possiblyUnseen;
    findings.push(
      `${all} outcomes, and clients connected ${least === established ? '' : `${least} to `}${established} times`,
    );
  }
  if (internal > 0 && endedWorkers === 0) findings.push(`${internal} ended as "internal", and no worker was ended`);
  return [
    ...findings,
    ...checkCompletedConnections(name, {
      completed: count.outcomes.completed ?? 0,
      clean: clientOutcomes.clean,
      internal,
    }),
  ];
}

/** What was well for the client was well for the proxy; and the other way round, where no client ends anything by RST. */
function checkCompletedConnections(
  name: ServiceName,
  { completed, clean, internal }: { readonly completed: number; readonly clean: number; readonly internal: number },
): string[] {
  const { isEcho, clientProfile } = SERVICES[name];
  if (!isEcho) return [];
  const tooFew = completed < clean - internal;
  const tooMany = clientProfile === 'calm' && clean < completed - internal;
  return tooFew || tooMany ? [`${completed} completed, and ${clean} clients saw FIN both ways`] : [];
}

function sumOutcomes({ outcomes }: ServiceView, names: readonly string[]): number {
  return names.reduce((total, outcome) => total + (outcomes[outcome] ?? 0), 0);
}
