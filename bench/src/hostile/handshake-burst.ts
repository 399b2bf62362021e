// A tenant whose clients first open their connections, and then send all their ClientHellos at the same moment. The proxy terminates TLS,
// so each ClientHello costs the proxy a signature with the private key of the Service's certificate.
import { setTimeout } from 'node:timers/promises';
import { type CertificateOptions, freePort, makeCertificate } from '@weir/testkit';
import type { HandshakeFlood } from '../load/handshake-flood-process.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { serviceManifest, tlsSecretManifest } from '../subjects/weir-manifests.ts';
import type { Attacker } from './scenarios.ts';

const HOST = 'web.hostile.example';
const NAMESPACE = 'hostile';
const SECRET = 'web-tls';

export type HandshakeBurstOptions = {
  readonly connections: number;
  readonly key: Pick<CertificateOptions, 'keyType' | 'rsaBits'>;
};

export async function startHandshakeBurst({ connections, key }: HandshakeBurstOptions): Promise<Attacker> {
  const port = await freePort();
  // The clients never complete their handshakes, so the proxy connects to no endpoint.
  const target = await freePort();
  const program = new URL('../load/handshake-flood-process.ts', import.meta.url);
  const flood = new RpcProcess<HandshakeFlood>(program, []);
  return {
    manifests: [
      serviceManifest(
        {
          name: 'web',
          namespace: NAMESPACE,
          protocol: 'TCP',
          port,
          annotations: { 'tls-secret': SECRET, 'tls-ports': String(port) },
        },
        { target, addresses: ['127.0.0.1'] },
      ),
      tlsSecretManifest({ name: SECRET, namespace: NAMESPACE }, makeCertificate({ name: HOST, ...key })),
    ].join('---\n'),
    arm: () => flood.call('open', port, connections),
    async attack(seconds) {
      await flood.call('sendClientHellos', HOST);
      await setTimeout(seconds * 1000);
      const { sent, answered, ended } = await flood.call('report');
      return `${answered} of ${sent} ClientHellos answered, ${ended} connections closed`;
    },
    disarm: () => flood.call('close'),
    [Symbol.asyncDispose]: () => flood[Symbol.asyncDispose](),
  };
}
