import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Mount point of a control group hierarchy, and the path of the group that was created in the hierarchy. */
export type ControlGroup = { readonly tree: string; readonly group: string };

/**
 * Creates a group with this name in every hierarchy and moves this process, and with it every later child, into the groups of
 * version 1. The new group is below our current group, so that existing limits stay in effect. The process is not moved in
 * version 2, where a group with subgroups may not have processes and only groups near the root can set limits.
 */
export function joinControlGroups(name: string): ControlGroup[] {
  return hierarchies().map(({ tree, version, ownGroup }) => {
    const group = join(tree, version === 1 ? ownGroup : '', name);
    mkdirSync(group, { recursive: true });
    // A group without processors and memory nodes accepts no process.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if (version === 1 && existsSync(join(group, file)))
        writeFileSync(join(group, file), readFileSync(join(group, '..', file)));
    }
    if (version === 1) writeFileSync(join(group, 'cgroup.procs'), String(process.pid));
    return { tree, group };
  });
}

type Hierarchy = {
  readonly tree: string;
  readonly version: 1 | 2;
  /** Path of the group of this process, relative to the mount. */
  readonly ownGroup: string;
};

/** In a hybrid setup the version 2 hierarchy has no controllers and is joined like a hierarchy of version 1. */
function hierarchies(): Hierarchy[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').flatMap(parseMount);
  const groups = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n').map(parseMembership);
  const isHybrid = mounts.some(({ type }) => type === 'cgroup');
  return mounts.map(({ tree, root, type, options }) => {
    const ours = groups.find(({ controllers }) =>
      type === 'cgroup2'
        ? controllers.length === 0
        : controllers.length > 0 && controllers.every((each) => options.includes(each)),
    );
    const below = relative(root, ours?.path ?? root);
    return { tree, version: type === 'cgroup' || isHybrid ? 1 : 2, ownGroup: below.startsWith('..') ? '' : below };
  });
}

type Mount = { tree: string; root: string; type: string; options: string[] };

/** Parses a line such as `30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`; field 7 is optional. */
function parseMount(line: string): Mount[] {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root = '', tree = ''] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? [{ tree, root, type, options: options.split(',') }] : [];
}

/** Parses `4:cpu,cpuacct:/path`, or `0::/path` in version 2. */
function parseMembership(line: string): { controllers: string[]; path: string } {
  const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
  return { controllers: controllers.split(',').filter(Boolean), path };
}
