// Parses scenarios, which are YAML files. A document with `step` sets the state of the fleet, and the documents after it are objects to
// apply in this step. After the last step, the Service has the reason of the scenario.
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
  /**
   * What the proxies report, by node: a bind error, or `silent` for a proxy without heartbeats. The proxies of other nodes bind every port.
   */
  readonly proxies: Readonly<Record<string, string>>;
  readonly store: 'up' | 'away';
  readonly seconds: number;
  /** The field manager of another controller that overwrites the addresses of each Service; '' if there is none. */
  readonly foreignController: string;
  /** Bytes that tenants have used in the current month, by tenant. */
  readonly used: Readonly<Record<string, number>>;
  /** TLS Secrets to create, by name. `days` are the first and the last day of validity, counted from now. */
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

/** Parses a scenario. A step inherits the settings of the previous step, except `remove`, `certificates` and objects. */
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

/** Values of the first step. A step lasts 20 seconds, because a proxy without heartbeats is reported sooner. */
const DEFAULT_STEP = {
  about: 'shop/web',
  proxies: {},
  store: 'up',
  seconds: 20,
  foreignController: '',
  used: {},
} as const;

export function manifestName({ kind, metadata: { namespace, name } }: Manifest): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
