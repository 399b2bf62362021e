// As much of an API server as the writer of status and Events meets: what it is told stays, and is told back.
import { ApiError, type KubeApi, type KubernetesStatus } from '@weir/controller';

type Request = Parameters<KubeApi['request']>[0];
type Json = Awaited<ReturnType<KubeApi['request']>>;
type Name = { readonly uid: string; readonly namespace: string; readonly name: string };

export interface ToldStatus {
  readonly loadBalancer?: { readonly ingress: readonly Ingress[] };
  readonly conditions?: readonly ToldCondition[];
}

export interface Ingress {
  readonly ip: string;
  readonly ipMode: string;
  readonly ports: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
}

export interface ToldCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface ToldEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
}

export class ToldServices {
  readonly #services = new Map<string, { readonly metadata: object; readonly spec: object; status: ToldStatus }>();
  readonly #events = new Map<string, ToldEvent[]>();
  #version = 0;
  #sink: Pick<KubernetesStatus, 'note'> | undefined;

  /** Who has to know what Services say. */
  watchedBy(sink: Pick<KubernetesStatus, 'note'>): void {
    this.#sink = sink;
  }

  /** These exist now, and no others. */
  keep(services: readonly Name[]): void {
    const paths = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`));
    for (const path of [...this.#services.keys()].filter((known) => !paths.has(known))) {
      this.#services.delete(path);
      this.#sink?.note(path, undefined);
    }
    for (const { uid, namespace, name } of services) {
      const path = `${namespace}/${name}`;
      if (!this.#services.has(path)) this.#set(path, { metadata: { uid, namespace, name }, status: {} });
    }
  }

  statusOf(path: string): ToldStatus {
    return this.#services.get(path)?.status ?? {};
  }

  /** Those about a Service since it was last asked. */
  takeEventsOf(path: string): readonly ToldEvent[] {
    const events = this.#events.get(path) ?? [];
    this.#events.delete(path);
    return events;
  }

  request = async ({ method, path, body }: Request): Promise<Json> => {
    if (method === 'GET') throw new ApiError('NOT_FOUND', 'there is none', { missing: path });
    if (path.includes('/events/')) return this.#tell(body as unknown as ToldEvent & { readonly regarding: Name });
    const [, namespace, name] = /namespaces\/(.*)\/services\/(.*)\/status$/.exec(path) ?? [];
    const { metadata, status } = body as unknown as { readonly metadata: object; readonly status: ToldStatus };
    return this.#set(`${namespace}/${name}`, { metadata, status });
  };

  #tell(event: ToldEvent & { readonly regarding: Name }): Json {
    const path = `${event.regarding.namespace}/${event.regarding.name}`;
    this.#events.set(path, [...(this.#events.get(path) ?? []), event]);
    return {};
  }

  #set(path: string, { metadata, status }: { readonly metadata: object; readonly status: ToldStatus }): Json {
    this.#version += 1;
    const service = {
      metadata: { ...metadata, resourceVersion: String(this.#version) },
      spec: { type: 'LoadBalancer' },
      status,
    };
    this.#services.set(path, service);
    this.#sink?.note(path, service);
    return structuredClone(service) as Json;
  }
}
