import { createHash, type KeyObject, sign } from 'node:crypto';
import { type Certificate, distinguishedName, signatureAlgorithm } from './certificate.ts';
import { bitString, generalizedTime, nullValue, objectIdentifier, octetString, sequence, taggedValue } from './der.ts';

export interface OcspResponseOptions {
  readonly status?: 'good' | 'revoked';
  readonly thisUpdate?: Date;
  /** Null for a response without an end. */
  readonly nextUpdate?: Date | null;
}

const HOUR_MS = 3_600_000;
const SHA1: Buffer = sequence(objectIdentifier('1.3.14.3.2.26'), nullValue);

/** Makes an OCSP response in DER (RFC 6960 §4.2.1) for a certificate, signed by its issuer. */
export function makeOcspResponse(certificate: Certificate, options: OcspResponseOptions = {}): Buffer {
  const { status = 'good', thisUpdate = new Date(Date.now() - HOUR_MS) } = options;
  const { nextUpdate = new Date(Date.now() + 24 * HOUR_MS) } = options;
  const issuer = certificate.issuer ?? certificate;
  const time = generalizedTime(thisUpdate);
  const certificateId = sequence(
    SHA1,
    octetString(sha1(distinguishedName(issuer.name))),
    octetString(sha1(publicKeyBits(issuer.publicKey))),
    certificate.serialNumber,
  );
  const single = sequence(
    certificateId,
    status === 'good' ? taggedValue(0x80) : taggedValue(0xa1, time),
    time,
    ...(nextUpdate === null ? [] : [taggedValue(0xa0, generalizedTime(nextUpdate))]),
  );
  const data = sequence(taggedValue(0xa1, distinguishedName(issuer.name)), time, sequence(single));
  const signature = bitString(sign('sha256', data, issuer.privateKey));
  const basic = sequence(data, signatureAlgorithm(issuer.privateKey), signature);
  const basicResponse = objectIdentifier('1.3.6.1.5.5.7.48.1.1');
  const successful = taggedValue(0x0a, Buffer.of(0));
  return sequence(successful, taggedValue(0xa0, sequence(basicResponse, octetString(basic))));
}

function sha1(bytes: Buffer): Buffer {
  return createHash('sha1').update(bytes).digest();
}

/** Returns the content of the bit string in a SubjectPublicKeyInfo. Both key types of `makeCertificate` have it at the end. */
function publicKeyBits(key: KeyObject): Buffer {
  const spki = key.export({ type: 'spki', format: 'der' });
  const bits = key.asymmetricKeyType === 'rsa' ? key.export({ type: 'pkcs1', format: 'der' }) : spki.subarray(-65);
  return Buffer.from(bits);
}
