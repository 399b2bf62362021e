// The Secrets of a release as an operator has them who lets the chart make none: see docs/existing-secrets.md.
import { randomBytes } from 'node:crypto';
import { makeCertificate } from '@weir/testkit';
import { RELEASE_NAMESPACE } from './chart-fleet.ts';

/** The value that names the certificate of each server. */
const CERTIFICATE_VALUES = {
  proxy: 'proxy.admin.tls',
  controller: 'controller.admin.tls',
  console: 'console.tls',
  redis: 'redis.tls',
} as const;

export interface ExistingSecrets {
  readonly objects: readonly object[];
  /** Arguments of helm. */
  readonly helmArguments: readonly string[];
}

/** `fullName` is what the chart puts before the names of its objects: `weir`, `edge-weir`. */
export function existingSecrets(fullName: string): ExistingSecrets {
  const issuer = makeCertificate({ name: `authority of ${fullName}`, isAuthority: true });
  const certificates = Object.entries(CERTIFICATE_VALUES).map(([server, value]) => {
    const host = `${fullName}-${server}`;
    const names = [host, `${host}.${RELEASE_NAMESPACE}.svc`];
    const { chain, key } = makeCertificate({ name: host, names, issuer });
    const data = { 'tls.crt': chain, 'tls.key': key, 'ca.crt': issuer.certificate };
    return { value: `${value}.existingSecret`, secret: secretManifest(`own-${server}`, data) };
  });
  const passwords = Object.fromEntries(
    ['controller', 'proxy', 'console'].map((user) => [`${user}-password`, randomText()] as const),
  );
  const others = [
    { value: 'redis.auth.existingSecret', secret: secretManifest('own-passwords', passwords) },
    { value: 'adminToken.existingSecret', secret: secretManifest('own-token', { token: randomText() }) },
    { value: 'tls.fleetSecret', secret: secretManifest('own-fleet', { secret: randomText() }) },
  ];
  const all = [...certificates, ...others];
  return {
    objects: all.map(({ secret }) => secret),
    helmArguments: all.map(({ value, secret }) => `--set=${value}=${secret.metadata.name}`),
  };
}

function secretManifest(name: string, stringData: Readonly<Record<string, string>>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: RELEASE_NAMESPACE }, stringData };
}

const randomText = (): string => randomBytes(20).toString('hex');
