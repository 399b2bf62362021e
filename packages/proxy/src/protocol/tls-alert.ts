import type { ClientHelloFault } from './client-hello.ts';

/** The numbers of TLS alerts (RFC 8446 §6), including `unrecognized_name` (RFC 6066 §3). */
export const TLS_ALERT = {
  unexpectedMessage: 10,
  illegalParameter: 47,
  accessDenied: 49,
  decodeError: 50,
  protocolVersion: 70,
  internalError: 80,
  unrecognizedName: 112,
} as const;

export type TlsAlert = (typeof TLS_ALERT)[keyof typeof TLS_ALERT];

/** Returns the alert for a client whose ClientHello is refused, or undefined if the client does not speak TLS. */
export function tlsAlertFor(fault: ClientHelloFault): TlsAlert | undefined {
  switch (fault) {
    case 'not-tls':
      return undefined;
    case 'ssl2':
      return TLS_ALERT.protocolVersion;
    case 'unexpected-message':
      return TLS_ALERT.unexpectedMessage;
    case 'malformed':
      return TLS_ALERT.decodeError;
    // The ClientHello is well formed, but a value is out of range.
    case 'too-large':
    case 'bad-server-name':
      return TLS_ALERT.illegalParameter;
  }
}

/**
 * Returns a TLS record with a fatal alert. The caller must close the connection with FIN, because a reset may overtake
 * the alert.
 */
export function encodeTlsAlert(alert: TlsAlert): Uint8Array {
  return Uint8Array.of(21, 3, 3, 0, 2, 2, alert);
}
