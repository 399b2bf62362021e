import { startEnvoy } from './envoy.ts';
import { startHaproxy } from './haproxy.ts';
import { startNginxStream } from './nginx-stream.ts';
import { startPipe } from './pipe.ts';
import type { BackendPorts, Subject } from './subject.ts';
import type { SubjectName } from './subject-name.ts';
import { startWeir } from './weir.ts';

export function startSubject(
  name: Exclude<SubjectName, 'direct'>,
  backends: BackendPorts,
  options: { readonly profile?: string; readonly isInspected?: boolean } = {},
): Promise<Subject> {
  switch (name) {
    case 'weir':
      return startWeir(backends, options);
    case 'weir-limits':
      return startWeir(backends, { ...options, name, limits: 'roomy' });
    case 'weir-2-workers':
      return startWeir(backends, { ...options, name, workers: 2 });
    case 'haproxy':
      return startHaproxy(backends);
    case 'nginx':
      return startNginxStream(backends);
    case 'envoy':
      return startEnvoy(backends);
    case 'pipe':
      return startPipe(backends);
  }
}
