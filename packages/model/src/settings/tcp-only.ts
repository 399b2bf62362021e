// What concerns TCP connections only. On a Service of UDP ports alone it would do nothing: who set it believes that clients
// are told to endpoints, or kept out.
import type { ServiceObject } from '../snapshot.ts';
import { quote } from '../translate/text.ts';
import { ANNOTATION_PREFIX } from './annotation-prefix.ts';
import type { ServiceSettings } from './service-settings.ts';

const TCP_ONLY_ANNOTATIONS: Readonly<Record<string, (settings: ServiceSettings) => boolean>> = {
  'proxy-protocol': ({ proxyProtocol }) => proxyProtocol !== null,
  'tls-passthrough': ({ tlsPassthrough }) => tlsPassthrough,
  'tls-secret': ({ tls }) => tls !== undefined,
  hosts: ({ hosts }) => hosts.length > 0,
};

/** What is asked for of TCP in vain: one text for each annotation, with what to do. */
export function tcpOnlyMistakes({ ports, annotations }: ServiceObject, settings: ServiceSettings): string[] {
  const isUdp = ports.some(({ protocol }) => protocol === 'UDP') && ports.every(({ protocol }) => protocol !== 'TCP');
  if (!isUdp) return [];
  return Object.entries(TCP_ONLY_ANNOTATIONS).flatMap(([name, isAskedFor]) => {
    const annotation = `${ANNOTATION_PREFIX}${name}`;
    return isAskedFor(settings)
      ? [
          `annotation ${annotation}: ${quote(annotations[annotation] ?? '')} can be honoured only for TCP, and the Service has only UDP ports; remove the annotation, or add a TCP port`,
        ]
      : [];
  });
}
