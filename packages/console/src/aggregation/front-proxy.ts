import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import type { ApiClient } from '../kubernetes/api-connection.ts';
import { type FrontProxySettings, parseFrontProxySettings } from './front-proxy-settings.ts';

export interface FrontProxyOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly log: Logger;
}

const CONFIG_MAP = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
/** A rotation overlaps by days. */
const REFRESH_INTERVAL_MS = 60_000;
const RETRY_DELAY_MS = 10_000;

/** What the API server shows as a front proxy, kept up to date. */
export class FrontProxy {
  readonly #options: FrontProxyOptions;
  readonly #closing = new AbortController();
  readonly #refreshing: Promise<void>;
  readonly #listeners = new Set<() => void>();
  #settings: FrontProxySettings | undefined;
  #lastWarning = '';

  constructor(options: FrontProxyOptions) {
    this.#options = options;
    this.#refreshing = this.#refreshUntilClosed();
  }

  /** Undefined: not known yet, or there is none; nobody may say then for whom they ask. */
  get settings(): FrontProxySettings | undefined {
    return this.#settings;
  }

  /** Called when other authorities count. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#refreshing;
  }

  async #refreshUntilClosed(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const isKnown = await this.#read();
      await wait(clock, isKnown ? REFRESH_INTERVAL_MS : RETRY_DELAY_MS, signal).catch(() => {});
    }
  }

  /** What was known goes on when it cannot be read. */
  async #read(): Promise<boolean> {
    try {
      const { status, body } = await this.#options.api.send('GET', CONFIG_MAP);
      if (status !== 200)
        throw new Error(`HTTP ${status} for ConfigMap kube-system/extension-apiserver-authentication`);
      const before = this.#settings?.ca;
      this.#settings = parseFrontProxySettings((body as { data?: Record<string, string> }).data ?? {});
      if (this.#settings?.ca !== before) for (const listener of this.#listeners) listener();
      this.#lastWarning = '';
      return true;
    } catch (error) {
      const reason = errorMessage(error);
      if (reason !== this.#lastWarning) this.#options.log.warn({ reason }, READ_FAILED_MESSAGE);
      this.#lastWarning = reason;
      return false;
    }
  }
}

const READ_FAILED_MESSAGE =
  'how the API server signs in as a front proxy cannot be read; the console as an aggregated API waits for it';
