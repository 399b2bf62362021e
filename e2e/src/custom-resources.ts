import { fileURLToPath } from 'node:url';
import type { ControlPlane } from '@weir/testkit';

const DEFINITIONS_FOLDER = fileURLToPath(new URL('../../charts/weir-crds/definitions/', import.meta.url));

/** Those of the chart, as `docs/operating.md` says. */
export async function applyCustomResources({ kubectl }: ControlPlane): Promise<void> {
  await kubectl('apply', '-f', DEFINITIONS_FOLDER);
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
}
