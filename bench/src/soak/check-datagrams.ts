import { checkBytesBetween } from './check-metering.ts';
import type { SoakResult } from './reading.ts';
import { REFUSED_OUTCOMES, type ServiceName } from './services.ts';

/** Every flow has ended, with one outcome; bytes are between what one end got and the other gave. */
export function checkUdpFlows(
  name: ServiceName,
  { view, ledger, datagramTotals, endpointTotals }: SoakResult,
): string[] {
  const count = view.services.find((service) => service.name === name);
  const metered = ledger[name];
  if (count === undefined || metered === undefined) return ['the proxy does not count it'];
  const ends = Object.entries(count.outcomes).filter(([outcome]) => !REFUSED_OUTCOMES.includes(outcome));
  const outcomes = ends.reduce((sum, [, each]) => sum + each, 0);
  const end = endpointTotals[name];
  return [
    ...(count.active === 0 ? [] : [`${count.active} flows are still there`]),
    ...(datagramTotals.answered > 0 ? [] : ['no client has ever got an answer']),
    ...(datagramTotals.foreign === 0 ? [] : [`${datagramTotals.foreign} datagrams came back that were not sent`]),
    ...(count.counters.connections === outcomes
      ? []
      : [`${count.counters.connections} flows, and ${outcomes} outcomes`]),
    ...(metered.connections >= datagramTotals.answered
      ? []
      : [`${metered.connections} flows, and ${datagramTotals.answered} clients had an answer`]),
    ...checkBytesBetween('received', metered.receivedBytes, { least: end.read, most: datagramTotals.sentBytes }),
    ...checkBytesBetween('sent', metered.sentBytes, { least: datagramTotals.readBytes, most: end.written }),
  ];
}
