import { between } from './check-metering.ts';
import type { Reading } from './reading.ts';
import { refusals, type ServiceName } from './services.ts';

/** Every flow has ended, with one outcome; bytes are between what one end got and the other gave. */
export function checkDatagrams(name: ServiceName, { view, ledger, datagrams, endpoints }: Reading): string[] {
  const count = view.services.find((service) => service.name === name);
  const metered = ledger[name];
  if (count === undefined || metered === undefined) return ['the proxy does not count it'];
  const ends = Object.entries(count.outcomes).filter(([outcome]) => !refusals.includes(outcome));
  const outcomes = ends.reduce((sum, [, each]) => sum + each, 0);
  const end = endpoints[name];
  return [
    ...(count.active === 0 ? [] : [`${count.active} flows are still there`]),
    ...(datagrams.answered > 0 ? [] : ['no client has ever got an answer']),
    ...(datagrams.foreign === 0 ? [] : [`${datagrams.foreign} datagrams came back that were not sent`]),
    ...(count.counters.connections === outcomes
      ? []
      : [`${count.counters.connections} flows, and ${outcomes} outcomes`]),
    ...(metered.connections >= datagrams.answered
      ? []
      : [`${metered.connections} flows, and ${datagrams.answered} clients had an answer`]),
    ...between('received', metered.receivedBytes, { least: end.read, most: datagrams.sentBytes }),
    ...between('sent', metered.sentBytes, { least: datagrams.readBytes, most: end.written }),
  ];
}
