// CRDs of the Prometheus operator for the kinds that the chart creates, with the part of their schemas that the chart uses.

const text = { type: 'string' };
const labels = { type: 'object', additionalProperties: text };
const selector = { type: 'object', properties: { matchLabels: labels } };
const secretKey = {
  type: 'object',
  required: ['key'],
  properties: { name: text, key: text, optional: { type: 'boolean' } },
};
const secretOrConfigMap = { type: 'object', properties: { secret: secretKey, configMap: secretKey } };

const relabeling = {
  type: 'object',
  properties: {
    sourceLabels: { type: 'array', items: text },
    separator: text,
    targetLabel: text,
    regex: text,
    replacement: text,
    action: text,
  },
};

const endpoint = {
  type: 'object',
  properties: {
    port: text,
    portNumber: { type: 'integer' },
    targetPort: { 'x-kubernetes-int-or-string': true },
    path: text,
    scheme: { type: 'string', enum: ['http', 'https', 'HTTP', 'HTTPS'] },
    interval: text,
    scrapeTimeout: text,
    honorLabels: { type: 'boolean' },
    authorization: { type: 'object', properties: { type: text, credentials: secretKey } },
    bearerTokenSecret: secretKey,
    tlsConfig: {
      type: 'object',
      properties: {
        ca: secretOrConfigMap,
        cert: secretOrConfigMap,
        keySecret: secretKey,
        serverName: text,
        insecureSkipVerify: { type: 'boolean' },
      },
    },
    relabelings: { type: 'array', items: relabeling },
    metricRelabelings: { type: 'array', items: relabeling },
  },
};

const podMonitor = {
  type: 'object',
  required: ['selector', 'podMetricsEndpoints'],
  properties: {
    jobLabel: text,
    podTargetLabels: { type: 'array', items: text },
    selector,
    namespaceSelector: {
      type: 'object',
      properties: { any: { type: 'boolean' }, matchNames: { type: 'array', items: text } },
    },
    podMetricsEndpoints: { type: 'array', items: endpoint },
  },
};

const rule = {
  type: 'object',
  required: ['expr'],
  properties: {
    alert: text,
    record: text,
    expr: { 'x-kubernetes-int-or-string': true },
    for: text,
    keep_firing_for: text,
    labels,
    annotations: labels,
  },
};

const prometheusRule = {
  type: 'object',
  properties: {
    groups: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: text, interval: text, labels, rules: { type: 'array', items: rule } },
      },
    },
  },
};

export const prometheusCrds: readonly object[] = [crd('PodMonitor', podMonitor), crd('PrometheusRule', prometheusRule)];

function crd(kind: string, spec: object): object {
  const singular = kind.toLowerCase();
  const group = 'monitoring.coreos.com';
  const openAPIV3Schema = { type: 'object', required: ['spec'], properties: { spec } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, singular, plural: `${singular}s` },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}
