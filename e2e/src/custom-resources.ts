import { fileURLToPath } from 'node:url';
import type { ControlPlane } from '@weir/testkit';

const folder = fileURLToPath(new URL('../../charts/weir-crds/definitions/', import.meta.url));

/** Those of the chart, as `docs/operating.md` says. */
export async function applyCustomResources({ kubectl }: ControlPlane): Promise<void> {
  await kubectl('apply', '-f', folder);
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
}
