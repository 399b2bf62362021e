// The types of values that the comments of values.yaml name, as JSON Schema. Patterns are of Go (RE2): helm checks them.

const PORT_SCHEMA = { type: 'integer', minimum: 1, maximum: 65_535 };

export const NAMED_TYPES: Readonly<Record<string, object>> = {
  /** Of Kubernetes: 100m, 128Mi, 2. */
  quantity: { type: ['string', 'number'], pattern: '^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$' },
  /** Of Weir: 500ms, 30s, 1h30m. */
  duration: { type: 'string', pattern: '^([0-9]+(d|h|m|s|ms))+$' },
  /** Of a Secret (RFC 1123 subdomain), or empty. */
  'secret-name': { type: 'string', pattern: '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$', maxLength: 253 },
  port: PORT_SCHEMA,
  ports: { type: 'array', items: PORT_SCHEMA, uniqueItems: true },
  'port-ranges': {
    type: 'array',
    items: { type: ['integer', 'string'], pattern: '^[0-9]{1,5}(-[0-9]{1,5})?$', minimum: 1, maximum: 65_535 },
    uniqueItems: true,
  },
  cidrs: { type: 'array', items: { type: 'string', pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$' }, uniqueItems: true },
  objects: { type: 'array', items: { type: 'object' } },
  map: { type: 'object', additionalProperties: true },
  /** Of a container. */
  resources: {
    type: 'object',
    properties: { requests: { type: 'object' }, limits: { type: 'object' }, claims: { type: 'array' } },
    additionalProperties: false,
  },
};
