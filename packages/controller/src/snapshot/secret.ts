import type { ClientAuthorities, SecretObject, UnusableSecret } from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { readCertificatePair } from './certificate-pair.ts';
import { DNS_LABEL, DNS_SUBDOMAIN } from './formats.ts';
import { readCertificates, unusable } from './pem-certificates.ts';
import { type ParseResult, parseObject } from './projection.ts';
import { readSecretValue, type SecretValue } from './secret-values.ts';

/** Of everything in a Secret only three values are looked at; the private key is sealed at once, and the rest is forgotten. */
export function parseSecret(raw: unknown, sealer: Sealer): ParseResult<SecretObject> {
  return parseObject('Secret', raw, (fields) => {
    const metadata = fields.object('metadata');
    const pair = { chain: readSecretValue(raw, 'tls.crt'), key: readSecretValue(raw, 'tls.key') };
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      certificate: readCertificatePair(pair, sealer),
      authorities: readAuthorities(readSecretValue(raw, 'ca.crt')),
    };
  });
}

function readAuthorities(value: SecretValue): ClientAuthorities | UnusableSecret | null {
  if (value.kind === 'none') return null;
  if (value.kind === 'unusable') return value;
  const certificates = readCertificates(value.text, 'ca.crt');
  if (certificates.kind === 'unusable') return certificates;
  const { list } = certificates;
  // It could vouch for itself at best, and whoever named it by mistake would wonder why no client is let in.
  const other = list.findIndex((each) => !each.ca);
  if (other >= 0) return unusable(`has a ca.crt whose certificate ${other + 1} is not that of a CA`);
  return Object.freeze({ kind: 'good', certificates: list.map(String).join('') });
}
