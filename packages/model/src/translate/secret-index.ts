// The Secrets that Services may name, and whether one can be used now.

import { secretPath } from '../certificate-validity.ts';
import type { SecretAccess } from '../fleet-settings.ts';
import { diffLists } from '../list-diff.ts';
import type { RefusalReason } from '../reason.ts';
import type { TlsTermination } from '../settings/service-settings.ts';
import type { CertificateValidity, SecretObject, ServiceObject, Snapshot, UnusableSecret } from '../snapshot.ts';
import { type CertificateEntry, certificateId, type StatusReason } from '../table/entry.ts';
import { dayOf, minuteOf, periodsOf } from '../usage/period.ts';

type Refusal = StatusReason<RefusalReason>;
type SecretFacts = Pick<Snapshot, 'settings' | 'secrets' | 'unreadSecrets' | 'validity'>;

/** What a Service gets that asks for TLS to end here. */
export type TlsCredentials =
  | { readonly kind: 'good'; readonly certificate: CertificateEntry }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const NO_SECRETS: readonly SecretObject[] = [];
const NO_VALIDITY: ReadonlyMap<string, CertificateValidity> = new Map();

export class SecretIndex {
  readonly #byPath = new Map<string, SecretObject>();
  #access: SecretAccess = { kind: 'none' };
  #namespaces: ReadonlySet<string> = new Set();
  #secrets = NO_SECRETS;
  #unread: Snapshot['unreadSecrets'];
  #validity = NO_VALIDITY;

  /** Returns the Secrets that say something else now, by `secretPath`; `all`: each may, also those that are not there. */
  update({
    settings,
    secrets = NO_SECRETS,
    unreadSecrets,
    validity = NO_VALIDITY,
  }: SecretFacts): ReadonlySet<string> | 'all' {
    const isOther = unreadSecrets !== this.#unread;
    const paths = new Set<string>();
    const { removed, added } = diffLists(this.#secrets, secrets);
    for (const { namespace, name } of removed) {
      this.#byPath.delete(secretPath(namespace, name));
      paths.add(secretPath(namespace, name));
    }
    for (const secret of added) {
      this.#byPath.set(secretPath(secret.namespace, secret.name), secret);
      paths.add(secretPath(secret.namespace, secret.name));
    }
    if (validity !== this.#validity) {
      for (const path of new Set([...validity.keys(), ...this.#validity.keys()]))
        if (validity.get(path) !== this.#validity.get(path)) paths.add(path);
    }
    const { secretAccess = { kind: 'none' } } = settings;
    this.#access = secretAccess;
    this.#namespaces = new Set(secretAccess.kind === 'namespaces' ? secretAccess.namespaces : []);
    this.#secrets = secrets;
    this.#unread = unreadSecrets;
    this.#validity = validity;
    return isOther ? 'all' : paths;
  }

  credentialsFor({ uid, namespace }: ServiceObject, { secret, clientCaSecret }: TlsTermination): TlsCredentials {
    const refusal = this.#refusalOf(namespace, secret, 'tls-secret');
    if (refusal !== undefined) return { kind: 'refused', refusal };
    const own = this.#byPath.get(secretPath(namespace, secret))?.certificate;
    if (own?.kind !== 'good')
      return refused('InvalidCertificate', this.#unusableText(secret, 'tls-secret', own ?? MISSING_KEY_PAIR));
    const outdated = this.#outdatedText(namespace, secret, own);
    if (outdated !== undefined) return refused('InvalidCertificate', outdated);
    const { chain, keyDigest, sealedKey, notAfter } = own;
    const shown = { chain, keyDigest, sealedKey, notAfter };
    const entry = { kind: 'certificate', id: certificateId(uid), service: uid, ...shown } as const;
    if (clientCaSecret === null) return { kind: 'good', certificate: { ...entry, clientAuthorities: null } };
    const caRefusal = this.#refusalOf(namespace, clientCaSecret, 'client-ca-secret');
    if (caRefusal !== undefined) return { kind: 'refused', refusal: caRefusal };
    const authorities = this.#byPath.get(secretPath(namespace, clientCaSecret))?.authorities;
    if (authorities?.kind !== 'good')
      return refused(
        'InvalidCertificate',
        this.#unusableText(clientCaSecret, 'client-ca-secret', authorities ?? MISSING_CA),
      );
    return { kind: 'good', certificate: { ...entry, clientAuthorities: authorities.certificates } };
  }

  /** What is to be said while it is served; undefined: its certificate is good for long. */
  expiryText({ namespace }: ServiceObject, { secret }: TlsTermination): string | undefined {
    const path = secretPath(namespace, secret);
    const validity = this.#validity.get(path);
    const certificate = this.#byPath.get(path)?.certificate;
    if (certificate?.kind !== 'good' || validity !== 'expiring') return undefined;
    return `the certificate of Secret "${secret}" is good until ${dayOf(certificate.notAfter)} only; renew it: clients will turn away afterwards`;
  }

  /** Why what it says cannot be known. */
  #refusalOf(namespace: string, name: string, annotation: string): Refusal | undefined {
    const which = `Secret "${name}" of annotation weir.dev/${annotation}`;
    const instead = annotation === 'tls-secret' ? ', or use weir.dev/tls-passthrough: "true"' : '';
    if (this.#access.kind === 'none')
      return forbidden(
        `${which} may not be read: this fleet reads no Secrets; ask the operator for tls.secretAccess${instead}`,
      );
    if (this.#access.kind === 'namespaces' && !this.#namespaces.has(namespace))
      return forbidden(
        `${which} may not be read: this fleet reads Secrets of some namespaces only, and "${namespace}" is not among them; ask the operator to add it to tls.secretNamespaces${instead}`,
      );
    if (this.#unread === 'everywhere' || this.#unread?.has(namespace) === true)
      return forbidden(
        `${which} cannot be read: the controller lacks the right to; ask the operator (weir get problems tells which)`,
      );
    if (this.#byPath.has(secretPath(namespace, name))) return undefined;
    const how =
      annotation === 'tls-secret'
        ? `kubectl create secret tls ${name} --cert=FILE --key=FILE`
        : `kubectl create secret generic ${name} --from-file=ca.crt=FILE`;
    return {
      reason: 'SecretNotFound',
      message: `${which} does not exist in namespace "${namespace}"; create it: ${how} -n ${namespace}`,
    };
  }

  #outdatedText(
    namespace: string,
    secret: string,
    { notBefore, notAfter }: { notBefore: number; notAfter: number },
  ): string | undefined {
    const validity = this.#validity.get(secretPath(namespace, secret));
    const which = `the certificate of Secret "${secret}" (annotation weir.dev/tls-secret)`;
    if (validity === 'expired') return `${which} was good until ${dayOf(notAfter)}; put a new one into the Secret`;
    if (validity === 'early')
      return `${which} is good from ${periodsOf(minuteOf(notBefore)).minute} UTC on only, and taken then; or put one that is good now into the Secret`;
    return undefined;
  }

  #unusableText(name: string, annotation: string, { why }: UnusableSecret): string {
    return `Secret "${name}" of annotation weir.dev/${annotation} ${why}; correct the Secret`;
  }
}

const MISSING_KEY_PAIR: UnusableSecret = { kind: 'unusable', why: 'has neither tls.crt nor tls.key' };
const MISSING_CA: UnusableSecret = { kind: 'unusable', why: 'has no ca.crt' };

function refused(reason: RefusalReason, message: string): TlsCredentials {
  return { kind: 'refused', refusal: { reason, message } };
}

function forbidden(message: string): Refusal {
  return { reason: 'SecretForbidden', message };
}
