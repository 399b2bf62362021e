// A scene is a YAML file with all that happens: a document with `step` says how the fleet is from here on, the documents after it are
// applied as kubectl does. The last step is the one that the scene is about.
import type { SecretAccess } from '@weir/model';
import { parseAllDocuments } from 'yaml';

export interface Scenario {
  /** Addresses must be of pods, as in a cluster: a directory trusts its files otherwise. */
  readonly trust: 'files' | 'pods';
  readonly sharedPorts: readonly number[];
  readonly secretAccess: SecretAccess['kind'];
  readonly steps: readonly Step[];
}

export interface Step {
  readonly title: string;
  /** The Service that is asked about. */
  readonly about: string;
  /** By node, why its proxy could not bind; `silent`: it is not heard. Of others it confirms everything. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly store: 'up' | 'away';
  readonly seconds: number;
  /** By tenant, the bytes of this month. */
  readonly used: Readonly<Record<string, number>>;
  /** Secrets of the namespace of the Service that are made here, by name: from and until which day, counted from now. */
  readonly certificates: Readonly<Record<string, { readonly days: readonly [from: number, until: number] }>>;
  /** `Service shop/web` */
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

/** What a step leaves out stays as it was, but for what happens in it. */
export function parseScenario(text: string): Scenario {
  const steps: Step[] = [];
  let fleet: ScenarioFleet = { trust: 'files', sharedPorts: [], secretAccess: 'cluster' };
  for (const document of parseAllDocuments(text)) {
    const raw = document.toJS() as Manifest | StepDocument;
    const before = steps.at(-1);
    if ('step' in raw) {
      const { step: title, trust, sharedPorts, secretAccess, ...more } = { ...fleet, ...raw };
      fleet = { trust, sharedPorts, secretAccess };
      const { remove = [], certificates = {} } = more;
      steps.push({ ...DEFAULT_STEP, ...before, ...more, title, remove, certificates, objects: [] });
    } else if (before !== undefined) {
      steps.splice(-1, 1, { ...before, objects: [...before.objects, raw] });
    } else throw new Error('a scene begins with a step');
  }
  return { ...fleet, steps };
}

/** 20 seconds are more than the grace of proxies that are not heard. */
const DEFAULT_STEP = { about: 'shop/web', proxies: {}, store: 'up', seconds: 20, used: {} } as const;

export function manifestName({ kind, metadata: { namespace, name } }: Manifest): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
