import { parseCidr, type ServiceCidrObject } from '@weir/model';
import { CIDR, DNS_SUBDOMAIN } from './formats.ts';
import { type Projection, project } from './projection.ts';

/** One that is being deleted counts until it is gone: Services may have addresses of it. */
export function projectServiceCidr(raw: unknown): Projection<ServiceCidrObject> {
  return project('ServiceCIDR', raw, (fields) => ({
    name: fields.object('metadata').requiredText('name', DNS_SUBDOMAIN),
    cidrs: Object.freeze(
      fields
        .object('spec')
        .texts('cidrs', CIDR)
        .map((text) => parseCidr(text)?.text ?? text),
    ),
  }));
}
