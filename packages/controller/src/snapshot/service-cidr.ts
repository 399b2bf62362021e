import { parseCidr, type ServiceCidrObject } from '@weir/model';
import { CIDR, DNS_SUBDOMAIN } from './formats.ts';
import { type ParseResult, parseObject } from './projection.ts';

/** One that is being deleted counts until it is gone: Services may have addresses of it. */
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
