// Checks the fields of manifests as an API server does for kubectl. Unknown fields are errors, because a misspelled field such as
// `loadBalancerSourceRange` would leave a Service open to every client. Settings of other load balancers get a warning.
import { closestName, type Problem, subjectFor, truncateMessage } from '@weir/model';
import type { Json } from '../../kubernetes/kube-api.ts';
import { isObject } from '../../parse/fields.ts';
import { mistakeProblems, type ParseResult, WEIR_PREFIX } from '../../parse/parse-object.ts';
import type { ManifestKind, ObjectIdentity, ObjectsByKind } from './manifest-kinds.ts';

/** The fields of an object. `any`: a value whose fields are not checked. A list stands for a list of such objects. */
type Schema = 'any' | { readonly [field: string]: Schema } | readonly [{ readonly [field: string]: Schema }];

function anyOf(names: string): { readonly [field: string]: Schema } {
  return Object.fromEntries(names.split(' ').map((name) => [name, 'any' as const]));
}

const OBJECT: { readonly [field: string]: Schema } = {
  ...anyOf('apiVersion kind status'),
  metadata: anyOf(
    'name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields',
  ),
};

/** The fields of Kubernetes 1.36, in the kinds whose fields Weir does not already check when it parses the object. */
const SCHEMAS: { readonly [K in ManifestKind]?: Schema } = {
  Service: {
    ...OBJECT,
    spec: {
      ...anyOf(
        'selector clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses ipFamilies ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution',
      ),
      ports: [anyOf('name protocol appProtocol port targetPort nodePort')],
      sessionAffinityConfig: { clientIP: anyOf('timeoutSeconds') },
    },
  },
  EndpointSlice: {
    ...OBJECT,
    ...anyOf('addressType'),
    ports: [anyOf('name protocol appProtocol port')],
    endpoints: [
      {
        ...anyOf('addresses hostname targetRef deprecatedTopology nodeName zone'),
        conditions: anyOf('ready serving terminating'),
        hints: { forZones: [anyOf('name')], forNodes: [anyOf('name')] },
      },
    ],
  },
};

/** Returns the result of parsing a manifest, without the object if the manifest has unknown fields. */
export function withFieldChecks<K extends ManifestKind>(
  { kind, namespace, name }: ObjectIdentity,
  raw: Json,
  result: ParseResult<ObjectsByKind[K]>,
): ParseResult<ObjectsByKind[K]> {
  const mistakes: string[] = [];
  const schema = SCHEMAS[kind];
  if (schema !== undefined) collectUnknownFields(raw, schema, { path: '', mistakes });
  const named = { ...raw, metadata: { name, namespace } };
  const problems = [...result.problems, ...(mistakes.length > 0 ? mistakeProblems(kind, named, { mistakes }) : [])];
  if (mistakes.length > 0) return { object: undefined, problems };
  if (kind === 'Service')
    problems.push(...foreignSettings(raw, subjectFor(kind, { namespace: namespace ?? '', name })));
  return { object: result.object, problems };
}

interface Walk {
  readonly path: string;
  readonly mistakes: string[];
}

function collectUnknownFields(value: unknown, schema: Schema, { path, mistakes }: Walk): void {
  if (schema === 'any') return;
  if (isList(schema)) {
    if (!Array.isArray(value)) return;
    for (const [index, item] of value.entries())
      collectUnknownFields(item, schema[0], { path: `${path}[${index}]`, mistakes });
    return;
  }
  if (!isObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    const fieldPath = path === '' ? name : `${path}.${name}`;
    const known = Object.hasOwn(schema, name) ? schema[name] : undefined;
    if (known !== undefined) collectUnknownFields(field, known, { path: fieldPath, mistakes });
    else mistakes.push(`${fieldPath} is unknown; ${adviceFor(name, Object.keys(schema))}`);
  }
}

function isList(schema: Schema): schema is readonly [{ readonly [field: string]: Schema }] {
  return Array.isArray(schema);
}

function adviceFor(name: string, known: readonly string[]): string {
  const meant = closestName(name, known);
  return meant === undefined ? 'Kubernetes has no such field here; remove it' : `did you mean ${meant}?`;
}

/** The prefixes of annotations that configure other load balancers. */
const FOREIGN_PREFIXES: Readonly<Record<string, string>> = {
  'metallb.io/': 'MetalLB',
  'metallb.universe.tf/': 'MetalLB',
  'kube-vip.io/': 'kube-vip',
  'lbipam.cilium.io/': 'Cilium',
  'io.cilium/': 'Cilium',
};

/** The most warnings for one Service, because the routing table carries every problem to all proxies. */
const MAX_FOREIGN_SETTINGS = 20;

/** Returns a warning for each setting that another load balancer would honour, in a Service that Weir may serve. */
function foreignSettings(raw: Json, subject: string): Problem[] {
  const spec = isObject(raw.spec) ? raw.spec : {};
  const { loadBalancerClass: name = null } = spec;
  const isForeign = typeof name === 'string' && !name.startsWith(WEIR_PREFIX);
  if (spec.type !== 'LoadBalancer' || isForeign) return [];
  const { annotations } = isObject(raw.metadata) ? raw.metadata : {};
  const messages = Object.keys(isObject(annotations) ? annotations : {}).flatMap((key) => {
    const prefix = Object.keys(FOREIGN_PREFIXES).find((each) => key.startsWith(each));
    return prefix === undefined
      ? []
      : [`annotation ${key} has no effect: it configures ${FOREIGN_PREFIXES[prefix]}, not Weir; remove the annotation`];
  });
  if (spec.loadBalancerIP !== undefined && spec.loadBalancerIP !== null && spec.loadBalancerIP !== '')
    messages.unshift(
      'spec.loadBalancerIP has no effect: Weir publishes addresses of its nodes; remove the field, or choose the nodes with annotation weir.dev/pool',
    );
  return messages.slice(0, MAX_FOREIGN_SETTINGS).map((message) => ({
    code: 'InvalidObject',
    subject,
    severity: 'warning',
    heals: false,
    message: truncateMessage(message),
  }));
}
