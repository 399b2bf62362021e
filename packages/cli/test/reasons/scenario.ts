// A scenario is a YAML file. A document with `step` sets the state of the fleet from this step on; the documents after it
// are objects to apply. The last step produces the reason of the scenario.
import type { SecretAccess } from '@weir/model';
import { parseAllDocuments } from 'yaml';

export interface Scenario {
  /** `pods`: endpoint addresses must belong to pods, as in a cluster. `files`: all addresses are trusted, as in a directory. */
  readonly trust: 'files' | 'pods';
  readonly sharedPorts: readonly number[];
  readonly secretAccess: SecretAccess['kind'];
  readonly steps: readonly Step[];
}

export interface Step {
  readonly title: string;
  /** The Service whose status is checked, as NAMESPACE/NAME. */
  readonly about: string;
  /** By node, the bind error of its proxy, or `silent` for a proxy without heartbeats. Other proxies bind every port. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly store: 'up' | 'away';
  readonly seconds: number;
  /** By tenant, the bytes of the current month. */
  readonly used: Readonly<Record<string, number>>;
  /** TLS Secrets to create, by name: first and last day of validity, counted from now. */
  readonly certificates: Readonly<Record<string, { readonly days: readonly [from: number, until: number] }>>;
  /** Objects to delete, such as `Service shop/web`. */
  readonly remove: readonly string[];
  readonly objects: readonly Manifest[];
}

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string; readonly name: string };
}

type ScenarioFleet = Omit<Scenario, 'steps'>;
type StepDocument = Partial<Omit<Step, 'title' | 'objects'>> & {
  readonly step: string;
} & Partial<ScenarioFleet>;

/** A step inherits the settings of the previous step, except `remove`, `certificates` and objects. */
export function parseScenario(text: string): Scenario {
  const steps: Step[] = [];
  let fleet: ScenarioFleet = { trust: 'files', sharedPorts: [], secretAccess: 'cluster' };
  for (const document of parseAllDocuments(text)) {
    const raw = document.toJS() as Manifest | StepDocument;
    const previous = steps.at(-1);
    if ('step' in raw) {
      const { step: title, trust, sharedPorts, secretAccess, ...more } = { ...fleet, ...raw };
      fleet = { trust, sharedPorts, secretAccess };
      const { remove = [], certificates = {} } = more;
      steps.push({ ...DEFAULT_STEP, ...previous, ...more, title, remove, certificates, objects: [] });
    } else if (previous !== undefined) {
      steps.splice(-1, 1, { ...previous, objects: [...previous.objects, raw] });
    } else throw new Error('a scenario must begin with a step');
  }
  return { ...fleet, steps };
}

/** A proxy without heartbeats is reported in less than 20 seconds. */
const DEFAULT_STEP = { about: 'shop/web', proxies: {}, store: 'up', seconds: 20, used: {} } as const;

export function manifestName({ kind, metadata: { namespace, name } }: Manifest): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
