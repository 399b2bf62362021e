import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Where a tree of control groups is mounted, and a group in it that we have made. */
export type ControlGroup = { readonly tree: string; readonly group: string };

/**
 * Makes a group of this name in every tree, and moves this process, with all that it starts, into those of version 1. Below the group
 * that we are in, so that whoever bounds us goes on to. In version 2 a group that has groups has no processes of its own, and
 * only groups near the root can bound theirs: there nobody moves.
 */
export function joinControlGroups(name: string): ControlGroup[] {
  return hierarchies().map(({ tree, version, ownGroup }) => {
    const group = join(tree, version === 1 ? ownGroup : '', name);
    mkdirSync(group, { recursive: true });
    // one without processors and memory takes nobody
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
  readonly version: 1 | 2 /** Our own group, from the mount on. */;
  readonly ownGroup: string;
};

/** A tree of version 2 that is mounted beside others has no resources to bound, and is joined as they are. */
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

/** `30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`, of which the seventh field may be absent. */
function parseMount(line: string): Mount[] {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root = '', tree = ''] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? [{ tree, root, type, options: options.split(',') }] : [];
}

/** `4:cpu,cpuacct:/path`, or `0::/path` of version 2. */
function parseMembership(line: string): { controllers: string[]; path: string } {
  const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
  return { controllers: controllers.split(',').filter(Boolean), path };
}
