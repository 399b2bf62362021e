import { readFile } from 'node:fs/promises';
import { errorMessage } from '@weir/runtime';
import { KubeApiError } from './api-error.ts';
import { type ApiRequest, type Json, KubeApi, type KubeApiOptions, type WatchRequest } from './kube-api.ts';
import { loadKubeConfig } from './kube-config.ts';

/** The API server of a kubeconfig that may be written, mended and replaced while we run. What is wrong with it is an `ApiError`. */
export class ReloadingKubeApi {
  readonly #path: string;
  readonly #options: KubeApiOptions;
  #loaded: { readonly text: string; readonly api: KubeApi } | undefined;

  constructor(path: string, options: KubeApiOptions = {}) {
    this.#path = path;
    this.#options = options;
  }

  async request(asked: ApiRequest): Promise<Json> {
    return (await this.#api()).request(asked);
  }

  async watch(asked: WatchRequest): Promise<void> {
    return (await this.#api()).watch(asked);
  }

  close(): void {
    this.#loaded?.api.close();
  }

  async #api(): Promise<KubeApi> {
    // Why it cannot be read the loading says.
    const text = await readFile(this.#path, 'utf8').catch(() => undefined);
    if (text !== undefined && this.#loaded?.text === text) return this.#loaded.api;
    try {
      const api = new KubeApi(loadKubeConfig(this.#path, '--kubeconfig'), this.#options);
      this.#loaded?.api.close();
      this.#loaded = { text: text ?? '', api };
      return api;
    } catch (error) {
      throw new KubeApiError('UNAUTHORIZED', errorMessage(error), { cause: error });
    }
  }
}
