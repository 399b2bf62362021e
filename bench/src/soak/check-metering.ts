import type { SoakResult } from './reading.ts';
import { SERVICES, type ServiceName } from './services.ts';

/**
 * What may be counted as sent to a client that did not read it: what the kernel took for it (`net.ipv4.tcp_wmem`, 4 MiB, and not read
 * by the client `net.ipv4.tcp_rmem`, which no client here lets grow beyond 8 MiB).
 */
export const MAX_UNREAD_BYTES: number = 12 * 1024 * 1024;
/** RFC 8446, 6: what a client is sent that is refused by its ClientHello, and no endpoint knows of. */
const TLS_ALERT_BYTES = 7;

/**
 * The ledger is what the proxy counted. Where an echo is behind, all that ended by FIN is in it to the byte; of the rest it is between
 * what one end surely got and what the other end gave.
 */
export function checkMetering(name: ServiceName, { view, ledger, clientTotals, endpointTotals }: SoakResult): string[] {
  const service = view.services.find((each) => each.name === name);
  const counters = service?.counters;
  const metered = ledger[name];
  if (counters === undefined || metered === undefined) return ['it is not in the ledger'];
  const tally = clientTotals[name];
  const others = tally.established - tally.clientOutcomes.clean;
  const { isEcho } = SERVICES[name];
  const clean = isEcho ? { sent: tally.cleanSent, read: tally.cleanRead } : { sent: 0, read: 0 };
  const end = endpointTotals[name];
  const { 'bad-client-hello': bad = 0, 'unknown-host': unknown = 0 } = service?.outcomes ?? {};
  const alerts = TLS_ALERT_BYTES * (bad + unknown);
  const found = [
    ...(['receivedBytes', 'sentBytes', 'connections'] as const).flatMap((each) =>
      counters[each] === metered[each]
        ? []
        : [`${each} is ${metered[each]} in the ledger, and the proxy counted ${counters[each]}`],
    ),
    ...checkBytesBetween('received', metered.receivedBytes, {
      least: Math.max(clean.sent, end.read),
      most: tally.cleanSent + tally.otherSent,
    }),
    ...checkBytesBetween('sent', metered.sentBytes, {
      least: tally.cleanRead + tally.otherRead,
      most: Math.min(tally.cleanRead + tally.otherRead + others * MAX_UNREAD_BYTES, end.written + alerts),
    }),
  ];
  return found;
}

export function checkBytesBetween(
  what: string,
  value: number,
  { least, most }: { readonly least: number; readonly most: number },
): string[] {
  if (value >= least && value <= most) return [];
  return [`${what} ${value} bytes, and ${least === most ? least : `${least} to ${most}`} were`];
}
