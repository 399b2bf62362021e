import { readFromCheckout } from './context.ts';

export type ImageKind = 'proxy' | 'controller' | 'redis';

/** As the chart names them by default. */
export function imageNames(): Readonly<Record<ImageKind, string>> {
  const version = chartAppVersion();
  return {
    proxy: `ghcr.io/weir-dev/weir-proxy:${version}`,
    controller: `ghcr.io/weir-dev/weir-controller:${version}`,
    redis: 'docker.io/library/redis:7.2-bookworm',
  };
}

export function chartAppVersion(): string {
  const [, version] =
    /^appVersion: *["']?([\w.+-]+)/m.exec(readFromCheckout('charts/weir/Chart.yaml').toString()) ?? [];
  if (version === undefined) throw new Error('charts/weir/Chart.yaml has no appVersion, by which images are named');
  return version;
}
