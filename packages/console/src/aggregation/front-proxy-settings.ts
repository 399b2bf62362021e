// What the API server says of itself as the front proxy of aggregated APIs: the ConfigMap kube-system/extension-apiserver-authentication.
import { X509Certificate } from 'node:crypto';

export interface FrontProxySettings {
  /** PEM, all of them. */
  readonly ca: string;
  readonly caCertificates: readonly X509Certificate[];
  /** Common names that its certificate may have; empty: any. */
  readonly allowedNames: readonly string[];
  readonly userHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** Undefined: this API server aggregates nothing. Throws when it says what cannot be read. */
export function parseFrontProxySettings(data: Readonly<Record<string, string>>): FrontProxySettings | undefined {
  const ca = data['requestheader-client-ca-file'];
  if (!ca) return undefined;
  const list = (name: string): string[] => JSON.parse(data[`requestheader-${name}`] ?? '[]') as string[];
  const lower = (name: string): string[] => list(name).map((each) => each.toLowerCase());
  return {
    ca,
    caCertificates: parseCertificates(ca),
    allowedNames: list('allowed-names'),
    userHeaders: lower('username-headers'),
    uidHeaders: lower('uid-headers'),
    groupHeaders: lower('group-headers'),
    extraHeaderPrefixes: lower('extra-headers-prefix'),
  };
}

function parseCertificates(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  return found.map((text) => new X509Certificate(text));
}
