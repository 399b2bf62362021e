import { objectPath } from '../certificate-validity.ts';
import { diffLists } from '../compare.ts';
import type { SecretAccess } from '../fleet-settings.ts';
import type { RefusalReason } from '../reason.ts';
import { type KeySecret, keySecretsOf, type TlsTermination } from '../settings/service-settings.ts';
import type { CertificateValidity, SecretObject, ServiceObject, Snapshot, UnusableObject } from '../snapshot.ts';
import { type CertificateEntry, certificateId } from '../table/entry.ts';
import { dayOf, minuteOf, periodsOf } from '../usage/period.ts';
import type { Refusal } from './allocate/port-refusals.ts';
import type { ConfigMapIndex } from './config-map-index.ts';

type SecretInput = Pick<Snapshot, 'settings' | 'secrets' | 'unreadableSecrets' | 'validity'>;

/** The certificate entry for one Secret of a Service, or the reason why the Secret cannot be used. */
export type TlsCredential = { readonly kind: 'good'; readonly certificate: CertificateEntry } | RefusedCredential;

/** The certificate entries of a Service whose TLS the proxies terminate, or the reason why its Secrets cannot be used. */
export type TlsCredentials =
  | { readonly kind: 'good'; readonly certificates: readonly CertificateEntry[] }
  | RefusedCredential;

interface RefusedCredential {
  readonly kind: 'refused';
  readonly refusal: Refusal;
}

/** The annotations that name a Secret with CAs. */
type CaAnnotation = 'client-ca-secret' | 'backend-tls-ca';

const NO_SECRETS: readonly SecretObject[] = [];
const NO_VALIDITY: ReadonlyMap<string, CertificateValidity> = new Map();

/**
 * Holds the Secrets of a snapshot by path, and the settings that say which Secrets may be read. The CAs of endpoints may be in a ConfigMap
 * instead.
 */
export class SecretIndex {
  readonly #configMaps: ConfigMapIndex;
  readonly #byPath = new Map<string, SecretObject>();
  #access: SecretAccess = { kind: 'none' };
  #namespaces: ReadonlySet<string> = new Set();
  #secrets = NO_SECRETS;
  #unreadableSecrets: Snapshot['unreadableSecrets'];
  #validity = NO_VALIDITY;

  constructor(configMaps: ConfigMapIndex) {
    this.#configMaps = configMaps;
  }

  /**
   * Applies the Secrets of a new snapshot. Returns the `objectPath` of each Secret whose content or validity changed. Returns `all` if
   * `unreadableSecrets` changed.
   */
  update({
    settings,
    secrets = NO_SECRETS,
    unreadableSecrets,
    validity = NO_VALIDITY,
  }: SecretInput): ReadonlySet<string> | 'all' {
    const hasAccessChanged = unreadableSecrets !== this.#unreadableSecrets;
    const paths = new Set<string>();
    const { removed, added } = diffLists(this.#secrets, secrets);
    for (const { namespace, name } of removed) {
      this.#byPath.delete(objectPath(namespace, name));
      paths.add(objectPath(namespace, name));
    }
    for (const secret of added) {
      this.#byPath.set(objectPath(secret.namespace, secret.name), secret);
      paths.add(objectPath(secret.namespace, secret.name));
    }
    if (validity !== this.#validity) {
      for (const path of new Set([...validity.keys(), ...this.#validity.keys()]))
        if (validity.get(path) !== this.#validity.get(path)) paths.add(path);
    }
    const { secretAccess = { kind: 'none' } } = settings;
    this.#access = secretAccess;
    this.#namespaces = new Set(secretAccess.kind === 'namespaces' ? secretAccess.namespaces : []);
    this.#secrets = secrets;
    this.#unreadableSecrets = unreadableSecrets;
    this.#validity = validity;
    return hasAccessChanged ? 'all' : paths;
  }

  /**
   * Returns the certificate entries of a Service in the order of its Secrets, or why one of the Secrets cannot be used. Missing CAs also
   * lead to a refusal, because without CAs the proxy would admit clients without a certificate, or could not verify endpoints.
   */
  credentialsFor(service: ServiceObject, tls: TlsTermination): TlsCredentials {
    const certificates: CertificateEntry[] = [];
    for (const secret of keySecretsOf(tls)) {
      const credential = this.credentialFor(service, tls, secret);
      if (credential.kind === 'refused') return credential;
      certificates.push(credential.certificate);
    }
    return { kind: 'good', certificates };
  }

  /** Returns the certificate entry for one Secret of a Service, or why the Secret cannot be used. */
  credentialFor({ uid, namespace }: ServiceObject, tls: TlsTermination, { name, position }: KeySecret): TlsCredential {
    const forEndpoints = position === 'endpoints';
    const annotation = forEndpoints ? 'backend-tls-secret' : 'tls-secret';
    const refusal = this.#refusalOf(namespace, name, annotation);
    if (refusal !== undefined) return { kind: 'refused', refusal };
    const certificate = this.#byPath.get(objectPath(namespace, name))?.certificate;
    if (certificate?.kind !== 'good')
      return refused('InvalidCertificate', this.#unusableText(name, annotation, certificate ?? MISSING_KEY_PAIR));
    const outdated = this.#outdatedText(objectPath(namespace, name), annotation, certificate);
    if (outdated !== undefined) return refused('InvalidCertificate', outdated);
    const { chain, keyDigest, sealedKey, notAfter, ocsp } = certificate;
    const id = certificateId(uid, position);
    const pair = { kind: 'certificate', id, service: uid, chain, keyDigest, sealedKey, notAfter } as const;
    if (forEndpoints) return { kind: 'good', certificate: { ...pair, clientAuthorities: null, forEndpoints } };
    const staple = ocsp === undefined ? {} : { ocsp };
    const entry = { ...pair, ...staple };
    if (position > 0) return { kind: 'good', certificate: { ...entry, clientAuthorities: null } };
    const { clientCaSecret, backend } = tls;
    const clients = clientCaSecret === null ? null : this.#authoritiesIn(namespace, clientCaSecret, 'client-ca-secret');
    if (clients !== null && typeof clients !== 'string') return clients;
    const endpoints = backend && this.#endpointAuthoritiesIn(namespace, backend.caSecret);
    if (endpoints === undefined) return { kind: 'good', certificate: { ...entry, clientAuthorities: clients } };
    if (typeof endpoints !== 'string') return endpoints;
    return { kind: 'good', certificate: { ...entry, clientAuthorities: clients, backendAuthorities: endpoints } };
  }

  /** Returns the CAs of endpoints as PEM. If a Secret and a ConfigMap have the name, the CAs are those of the Secret. */
  #endpointAuthoritiesIn(namespace: string, name: string): string | RefusedCredential {
    if (this.#byPath.has(objectPath(namespace, name))) return this.#authoritiesIn(namespace, name, 'backend-tls-ca');
    const subject = `ConfigMap "${name}" of annotation weir.dev/backend-tls-ca`;
    const unread = this.#configMaps.unreadText(namespace, name);
    if (unread !== undefined) return { kind: 'refused', refusal: forbidden(`${subject} ${unread}`) };
    const configMap = this.#configMaps.find(namespace, name);
    if (configMap === undefined) return this.#authoritiesIn(namespace, name, 'backend-tls-ca');
    const authorities = configMap.authorities ?? MISSING_CA;
    return authorities.kind === 'good'
      ? authorities.certificates
      : refused('InvalidCertificate', `${subject} ${authorities.why}; correct the ConfigMap`);
  }

  /** Returns the CAs in a Secret as PEM, or why the Secret cannot be used. */
  #authoritiesIn(namespace: string, secret: string, annotation: CaAnnotation): string | RefusedCredential {
    const refusal = this.#refusalOf(namespace, secret, annotation);
    if (refusal !== undefined) return { kind: 'refused', refusal };
    const authorities = this.#byPath.get(objectPath(namespace, secret))?.authorities;
    return authorities?.kind === 'good'
      ? authorities.certificates
      : refused('InvalidCertificate', this.#unusableText(secret, annotation, authorities ?? MISSING_CA));
  }

  /** Returns a warning about the certificate of a Service that expires first, if it expires soon; otherwise undefined. */
  expiryText({ namespace }: ServiceObject, tls: TlsTermination): string | undefined {
    let first: (KeySecret & { readonly notAfter: number }) | undefined;
    for (const { name, position } of keySecretsOf(tls)) {
      const path = objectPath(namespace, name);
      const certificate = this.#byPath.get(path)?.certificate;
      if (certificate?.kind !== 'good' || this.#validity.get(path) !== 'expiring') continue;
      const { notAfter } = certificate;
      if (first === undefined || notAfter < first.notAfter) first = { name, position, notAfter };
    }
    if (first === undefined) return undefined;
    const peers = first.position === 'endpoints' ? 'pods' : 'clients';
    return `the certificate of Secret "${first.name}" expires on ${dayOf(first.notAfter)}; renew it, because ${peers} reject it afterwards`;
  }

  /** Returns why the Secret cannot be read; undefined if it is in the snapshot. */
  #refusalOf(namespace: string, name: string, annotation: string): Refusal | undefined {
    const subject = `Secret "${name}" of annotation weir.dev/${annotation}`;
    const alternative = annotation === 'tls-secret' ? ', or use weir.dev/tls-passthrough: "true"' : '';
    if (this.#access.kind === 'none')
      return forbidden(
        `${subject} may not be read: this fleet reads no Secrets; ask the operator to set tls.secretAccess${alternative}`,
      );
    if (this.#access.kind === 'namespaces' && !this.#namespaces.has(namespace))
      return forbidden(
        `${subject} may not be read: this fleet reads Secrets of some namespaces only, and "${namespace}" is not among them; ask the operator to add it to tls.secretNamespaces${alternative}`,
      );
    if (this.#unreadableSecrets === 'everywhere' || this.#unreadableSecrets?.has(namespace) === true)
      return forbidden(
        `${subject} cannot be read: the controller lacks the permission; ask the operator ("weir get problems" names the permission)`,
      );
    if (this.#byPath.has(objectPath(namespace, name))) return undefined;
    const command =
      annotation === 'tls-secret' || annotation === 'backend-tls-secret'
        ? `kubectl create secret tls ${name} --cert=FILE --key=FILE`
        : `kubectl create secret generic ${name} --from-file=ca.crt=FILE`;
    if (annotation === 'backend-tls-ca')
      return {
        reason: 'SecretNotFound',
        message: `${subject} does not exist in namespace "${namespace}", and neither does a ConfigMap of this name; create one: kubectl create configmap ${name} --from-file=ca.crt=FILE -n ${namespace}`,
      };
    return {
      reason: 'SecretNotFound',
      message: `${subject} does not exist in namespace "${namespace}"; create it: ${command} -n ${namespace}`,
    };
  }

  #outdatedText(
    path: string,
    annotation: string,
    { notBefore, notAfter }: { notBefore: number; notAfter: number },
  ): string | undefined {
    const validity = this.#validity.get(path);
    const name = path.slice(path.indexOf('/') + 1);
    const subject = `the certificate of Secret "${name}" (annotation weir.dev/${annotation})`;
    if (validity === 'expired')
      return `${subject} expired on ${dayOf(notAfter)}; put a new certificate into the Secret`;
    if (validity === 'early')
      return `${subject} becomes valid at ${periodsOf(minuteOf(notBefore)).minute} UTC and is not used before; to serve now, put a certificate that is already valid into the Secret`;
    return undefined;
  }

  #unusableText(name: string, annotation: string, { why }: UnusableObject): string {
    return `Secret "${name}" of annotation weir.dev/${annotation} ${why}; correct the Secret`;
  }
}

const MISSING_KEY_PAIR: UnusableObject = { kind: 'unusable', why: 'has neither tls.crt nor tls.key' };
const MISSING_CA: UnusableObject = { kind: 'unusable', why: 'has no ca.crt' };

function refused(reason: RefusalReason, message: string): RefusedCredential {
  return { kind: 'refused', refusal: { reason, message } };
}

function forbidden(message: string): Refusal {
  return { reason: 'SecretForbidden', message };
}
