import { readFileSync } from 'node:fs';
import { programPath } from '../programs/require-program.ts';
import { ociArchive } from './oci-archive.ts';

/** Image of a server that answers with its host name over TCP and UDP; see echo-pod/main.go. */
export const ECHO_IMAGE = 'weir.test/echo-pod:1';
/** Name of the image that the quickstart uses. In tests, this name refers to the echo pod, which answers in the same format. */
const WHOAMI_IMAGE = 'docker.io/traefik/whoami:v1.11';
export const PAUSE_IMAGE = 'weir.test/pause:1';

/** Returns an archive with all images of test pods. Nodes import the archive, because they have no route to a registry. */
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
