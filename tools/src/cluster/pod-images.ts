import { readFileSync } from 'node:fs';
import { programPath } from '../programs/require-program.ts';
import { ociArchive } from './oci-archive.ts';

/** Says its name by TCP and UDP; see echo-pod/main.go. */
export const ECHO_IMAGE = 'weir.test/echo-pod:1';
/** What the quickstart runs: in the nodes it is a program of ours that answers in the same words. */
const WHOAMI_IMAGE = 'docker.io/traefik/whoami:v1.11';
export const PAUSE_IMAGE = 'weir.test/pause:1';

/** Nothing is pulled: nodes have no way out. */
export function podImagesArchive(): Buffer {
  const data = readFileSync(programPath('echo-pod'));
  return ociArchive(
    [
      { name: ECHO_IMAGE, entrypoint: ['/echo-pod'] },
      { name: WHOAMI_IMAGE, entrypoint: ['/echo-pod', 'http'] },
      { name: PAUSE_IMAGE, entrypoint: ['/echo-pod', 'pause'] },
    ],
    [
      { kind: 'folder', path: 'tmp', mode: 0o1777 },
      { kind: 'file', path: 'echo-pod', mode: 0o755, data },
    ],
  );
}
