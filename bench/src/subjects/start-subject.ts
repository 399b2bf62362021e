import { startHaproxy } from './haproxy.ts';
import { startPipe } from './pipe.ts';
import type { Ports, Subject } from './subject.ts';
import type { SubjectName } from './subject-name.ts';
import { startWeir } from './weir.ts';

export function startSubject(
  name: SubjectName,
  backends: Ports,
  options: { readonly profile?: string } = {},
): Promise<Subject> {
  switch (name) {
    case 'weir':
      return startWeir(backends, options);
    case 'haproxy':
      return startHaproxy(backends);
    case 'pipe':
      return startPipe(backends);
  }
}
