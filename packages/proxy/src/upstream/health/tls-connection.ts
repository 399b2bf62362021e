import { constants } from 'node:crypto';
import { connect, DEFAULT_CIPHERS, type TLSSocket } from 'node:tls';
import { tlsSocketInternals } from '../../transport/tls/node-tls.ts';
import { connectForCheck, type WantedCheck } from './check.ts';

/**
 * TLS options that keep a hostile endpoint from occupying the main thread under TLS 1.2. DHE is excluded, because the
 * endpoint could choose a group with many thousands of bits. Renegotiation is excluded, because the endpoint could
 * repeat it.
 */
const CHEAP_TLS_OPTIONS = { ciphers: `${DEFAULT_CIPHERS}:!DHE`, secureOptions: constants.SSL_OP_NO_RENEGOTIATION };

/**
 * Connects over TLS and offers one protocol by ALPN (RFC 7301). The certificate is not verified, because a check sends
 * nothing secret. Sends no server name if the check has no host, because a server name must not be an address (RFC 6066
 * §3).
 */
export function connectTlsForCheck(wanted: WantedCheck, alpn: 'http/1.1' | 'h2'): TLSSocket {
  const socket = connectForCheck(wanted);
  tlsSocketInternals.resetWhenClosed(socket);
  const options = { socket, rejectUnauthorized: false, ALPNProtocols: [alpn], ...CHEAP_TLS_OPTIONS };
  const { host } = wanted;
  return connect(host === null ? options : { ...options, servername: host }).on('error', () => undefined);
}
