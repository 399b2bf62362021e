import { type NamespaceObject, type NodeObject, type PodObject, parseCidr, type ServiceCidrObject } from '@weir/model';
import type { Fields } from './fields.ts';
import { CIDR, DNS_LABEL, DNS_SUBDOMAIN, IP_ADDRESS } from './fields.ts';
import { type ParseResult, parseObject, readMeta } from './parse-object.ts';

/** The label that an API server adds to each namespace. Its value is the name of the namespace. */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';
/** The label of nodes that run a proxy, and its value. */
export const ROLE_LABEL = 'role';
export const LOAD_BALANCER_ROLE = 'loadbalancer';

export function parseNamespace(raw: unknown): ParseResult<NamespaceObject> {
  return parseObject('Namespace', raw, (fields) => readMeta(fields, { name: DNS_LABEL, labels: true }));
}

export function parseNode(raw: unknown): ParseResult<NodeObject> {
  return parseObject('Node', raw, (fields) => {
    const addresses = fields.object('status').objects('addresses');
    return {
      ...readMeta(fields, { name: DNS_SUBDOMAIN, labels: true }),
      internalIPs: Object.freeze(addressesOf(addresses, 'InternalIP')),
      externalIPs: Object.freeze(addressesOf(addresses, 'ExternalIP')),
      unschedulable: fields.object('spec').boolean('unschedulable', false),
    };
  });
}

/** Returns the addresses of a type in their original order, because the first address of an IP family is the node's main address. */
function addressesOf(addresses: readonly Fields[], type: string): string[] {
  return addresses.filter((each) => each.text('type') === type).map((each) => each.requiredText('address', IP_ADDRESS));
}

const ENDED_PHASES = ['Succeeded', 'Failed'];

/**
 * Parses a pod. Drops the addresses of a pod that has ended, although its status still lists them. The network may have given these
 * addresses to a pod of another namespace, and the owner of the ended pod must not reach that pod.
 */
export function parsePod(raw: unknown): ParseResult<PodObject> {
  return parseObject('Pod', raw, (fields) => {
    const metadata = fields.object('metadata');
    const status = fields.object('status');
    const ips = status.objects('podIPs').flatMap((each) => each.text('ip', IP_ADDRESS) ?? []);
    const ip = status.text('podIP', IP_ADDRESS);
    const all = ip === null || ips.includes(ip) ? ips : [ip, ...ips];
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      ips: Object.freeze(ENDED_PHASES.includes(status.text('phase') ?? '') ? [] : all),
      hostNetwork: fields.object('spec').boolean('hostNetwork', false),
    };
  });
}

/**
 * Parses a ServiceCIDR. A ServiceCIDR that is being deleted counts until it is gone, because Services may still have addresses in its
 * ranges.
 */
export function parseServiceCidr(raw: unknown): ParseResult<ServiceCidrObject> {
  return parseObject('ServiceCIDR', raw, (fields) => ({
    name: fields.object('metadata').requiredText('name', DNS_SUBDOMAIN),
    cidrs: Object.freeze(
      fields
        .object('spec')
        .texts('cidrs', CIDR)
        .map((text) => parseCidr(text)?.text ?? text),
    ),
  }));
}
