import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** A control group: the mount point of its hierarchy, and the path of the group. */
export type ControlGroup = { readonly tree: string; readonly group: string };

/**
 * Creates a control group with this name in every hierarchy.
 *
 * Version 1: the new group is below the current group of this process, so that existing limits stay in effect. This process moves into
 * the new group, and its later children start there. Version 2: the new group is at the root and this process is not moved, because a
 * group with subgroups may not contain processes, and only groups near the root can set limits.
 */
export function joinControlGroups(name: string): ControlGroup[] {
  return hierarchies().map(({ tree, version, ownGroup }) => {
    const group = join(tree, version === 1 ? ownGroup : '', name);
    mkdirSync(group, { recursive: true });
    // A new cpuset group accepts no process before it has processors and memory nodes.
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
  /** Path of the current group of this process, relative to `tree`. */
  readonly ownGroup: string;
};

/**
 * Returns the mounted hierarchies. If both versions are mounted, the hierarchy of version 2 has no controllers and counts as version 1.
 */
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

/** Parses a line of mountinfo: `30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`. */
function parseMount(line: string): Mount[] {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root = '', tree = ''] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? [{ tree, root, type, options: options.split(',') }] : [];
}

/** Parses a line of /proc/self/cgroup: `4:cpu,cpuacct:/path` in version 1, `0::/path` in version 2. */
function parseMembership(line: string): { controllers: string[]; path: string } {
  const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
  return { controllers: controllers.split(',').filter(Boolean), path };
}
