// The Secrets of a release as an operator has them who lets the chart make none: see docs/existing-secrets.md.
import { randomBytes } from 'node:crypto';
import { makeCertificate } from '@weir/testkit';
import { NAMESPACE } from './chart-fleet.ts';

/** The value that names the certificate of each server. */
const CERTIFICATES = {
  proxy: 'proxy.admin.tls',
  controller: 'controller.admin.tls',
  console: 'console.tls',
  redis: 'redis.tls',
} as const;

export interface ExistingSecrets {
  readonly objects: readonly object[];
  /** Arguments of helm. */
  readonly values: readonly string[];
}

/** `fullName` is what the chart puts before the names of its objects: `weir`, `edge-weir`. */
export function existingSecrets(fullName: string): ExistingSecrets {
  const issuer = makeCertificate({ name: `authority of ${fullName}`, isAuthority: true });
  const certificates = Object.entries(CERTIFICATES).map(([server, value]) => {
    const host = `${fullName}-${server}`;
    const names = [host, `${host}.${NAMESPACE}.svc`];
    const { chain, key } = makeCertificate({ name: host, names, issuer });
    const data = { 'tls.crt': chain, 'tls.key': key, 'ca.crt': issuer.certificate };
    return { value: `${value}.existingSecret`, secret: secretOf(`own-${server}`, data) };
  });
  const passwords = Object.fromEntries(
    ['controller', 'proxy', 'console'].map((user) => [`${user}-password`, madeUp()] as const),
  );
  const others = [
    { value: 'redis.auth.existingSecret', secret: secretOf('own-passwords', passwords) },
    { value: 'adminToken.existingSecret', secret: secretOf('own-token', { token: madeUp() }) },
    { value: 'tls.fleetSecret', secret: secretOf('own-fleet', { secret: madeUp() }) },
  ];
  const all = [...certificates, ...others];
  return {
    objects: all.map(({ secret }) => secret),
    values: all.map(({ value, secret }) => `--set=${value}=${secret.metadata.name}`),
  };
}

function secretOf(name: string, stringData: Readonly<Record<string, string>>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: NAMESPACE }, stringData };
}

const madeUp = (): string => randomBytes(20).toString('hex');
