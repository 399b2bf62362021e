import { X509Certificate } from 'node:crypto';
import type { UnusableSecret } from '@weir/model';

export interface PemCertificates {
  readonly kind: 'certificates';
  readonly list: readonly [X509Certificate, ...X509Certificate[]];
}

/** Whoever may write a Secret can make us read as many, and every proxy of the fleet keep them. */
const MAX_CERTIFICATES = 20;
const PEM_BEGIN = '-----BEGIN CERTIFICATE-----';
const PEM_END = '-----END CERTIFICATE-----';

/** What stands between them (comments of bundles, a private key) is left out. `from` is the name of the key in the Secret. */
export function readCertificates(text: string, from: string): PemCertificates | UnusableSecret {
  const blocks = pemBlocksIn(text);
  if (blocks.length > MAX_CERTIFICATES)
    return unusable(`has more than ${MAX_CERTIFICATES} certificates in its ${from}; leave out what is not needed`);
  const list: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    const certificate = block.endsWith(PEM_END) ? readCertificate(block) : undefined;
    if (certificate === undefined)
      return unusable(`has a ${from} whose certificate ${index + 1} is damaged or cut off`);
    list.push(certificate);
  }
  const [first, ...others] = list;
  return first === undefined
    ? unusable(`has a ${from} without a certificate in PEM, which begins with ${PEM_BEGIN}`)
    : { kind: 'certificates', list: [first, ...others] };
}

export function unusable(why: string): UnusableSecret {
  return Object.freeze({ kind: 'unusable', why });
}

/** At most one more than is allowed. One without end goes up to the end of the text. */
function pemBlocksIn(text: string): string[] {
  const blocks: string[] = [];
  for (let from = text.indexOf(PEM_BEGIN); from >= 0 && blocks.length <= MAX_CERTIFICATES; ) {
    const end = text.indexOf(PEM_END, from);
    const to = end < 0 ? text.length : end + PEM_END.length;
    blocks.push(text.slice(from, to));
    from = text.indexOf(PEM_BEGIN, to);
  }
  return blocks;
}

function readCertificate(pem: string): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(pem);
    const { validFromDate, validToDate, publicKey } = certificate;
    const areTimes = Number.isFinite(validFromDate.getTime()) && Number.isFinite(validToDate.getTime());
    return areTimes && publicKey.type === 'public' ? certificate : undefined;
  } catch {
    return undefined;
  }
}
