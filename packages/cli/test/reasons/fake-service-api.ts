// A fake API server for the writers of status and Events. The fake stores each status and reports the changed Service to the observer, as a
// watch would.
import { type KubeApi, KubeApiError, type KubernetesStatus } from '@weir/controller';

type Request = Parameters<KubeApi['request']>[0];
type Json = Awaited<ReturnType<KubeApi['request']>>;
type ServiceName = { readonly uid: string; readonly namespace: string; readonly name: string };

export interface ReportedStatus {
  readonly loadBalancer?: { readonly ingress: readonly ReportedIngress[] };
  readonly conditions?: readonly ReportedCondition[];
}

export interface ReportedIngress {
  readonly ip: string;
  readonly ipMode: string;
  readonly ports: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
}

export interface ReportedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface ReportedEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
}

export class FakeServiceApi {
  readonly #services = new Map<string, { readonly metadata: object; readonly spec: object; status: ReportedStatus }>();
  readonly #events = new Map<string, ReportedEvent[]>();
  #version = 0;
  /** The field manager of another controller that overwrites each address; '' if there is none. */
  foreignController = '';
  #sink: Pick<KubernetesStatus, 'observe'> | undefined;

  /** Sets the observer that receives every change of a Service. */
  setSink(sink: Pick<KubernetesStatus, 'observe'>): void {
    this.#sink = sink;
  }

  /** Creates these Services if they are missing, and deletes all other Services. */
  setServices(services: readonly ServiceName[]): void {
    const paths = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`));
    for (const path of [...this.#services.keys()].filter((known) => !paths.has(known))) {
      this.#services.delete(path);
      this.#sink?.observe(path, undefined);
    }
    for (const { uid, namespace, name } of services) {
      const path = `${namespace}/${name}`;
      if (!this.#services.has(path)) this.#set(path, { metadata: { uid, namespace, name }, status: {} });
    }
  }

  statusOf(path: string): ReportedStatus {
    return this.#services.get(path)?.status ?? {};
  }

  /** Returns the Events about a Service that were written since the last call. */
  takeEventsOf(path: string): readonly ReportedEvent[] {
    const events = this.#events.get(path) ?? [];
    this.#events.delete(path);
    return events;
  }

  request = async ({ method, path, body }: Request): Promise<Json> => {
    if (method === 'GET') throw new KubeApiError('NOT_FOUND', 'not found', { missingName: path });
    if (path.includes('/events/'))
      return this.#recordEvent(body as unknown as ReportedEvent & { readonly regarding: ServiceName });
    const [, namespace, name] = /namespaces\/(.*)\/services\/(.*)\/status$/.exec(path) ?? [];
    const { metadata, status } = body as unknown as { readonly metadata: object; readonly status: ReportedStatus };
    const service = `${namespace}/${name}`;
    const written = this.#set(service, { metadata: withAddressesOf('weir-controller', metadata), status });
    if (this.foreignController !== '' && status.loadBalancer !== undefined) {
      const ingress = [{ ip: '198.51.100.1', ipMode: 'VIP', ports: [] }];
      const foreign = { ...status, loadBalancer: { ingress } };
      this.#set(service, { metadata: withAddressesOf(this.foreignController, metadata), status: foreign });
    }
    return written;
  };

  #recordEvent(event: ReportedEvent & { readonly regarding: ServiceName }): Json {
    const path = `${event.regarding.namespace}/${event.regarding.name}`;
    this.#events.set(path, [...(this.#events.get(path) ?? []), event]);
    return {};
  }

  #set(path: string, { metadata, status }: { readonly metadata: object; readonly status: ReportedStatus }): Json {
    this.#version += 1;
    const service = {
      metadata: { ...metadata, resourceVersion: String(this.#version) },
      spec: { type: 'LoadBalancer' },
      status,
    };
    this.#services.set(path, service);
    this.#sink?.observe(path, service);
    return structuredClone(service) as Json;
  }
}

/** Adds the field manager that has written the addresses in the status. */
function withAddressesOf(manager: string, metadata: object): object {
  const fieldsV1 = { 'f:status': { 'f:loadBalancer': { 'f:ingress': {} } } };
  return { ...metadata, managedFields: [{ manager, operation: 'Apply', subresource: 'status', fieldsV1 }] };
}
