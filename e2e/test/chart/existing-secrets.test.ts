// If the operator provides every Secret, the chart generates nothing. Tools that render the chart without access to the cluster, such as
// Argo CD and `helm template`, then get the same result each time.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connectClient, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { parseAllDocuments } from 'yaml';
import { INSTALLATIONS, type Installation, renderChart, renderManifests } from '../../src/chart/helm.ts';

interface Pods {
  readonly template: {
    readonly spec: {
      readonly initContainers: readonly { readonly name: string; readonly command: readonly string[] }[];
    };
  };
}

/** The passwords in the Secret. Weir's processes drop one trailing line break, as `READ_PASSWORDS` shows. */
const PASSWORDS = { controller: 'controller password', proxy: '$&ä', console: 'c\n' };
const READ_PASSWORDS = { ...PASSWORDS, console: 'c' };

describe('a release whose Secrets exist already', requireProgram('helm', 'redis'), () => {
  const installation = INSTALLATIONS.find(({ name }) => name === 'existing-secrets') as Installation;
  /** Runs the init container of Redis with these passwords. Returns the path of the users file that the container has written. */
  const usersFor = async (folder: string, passwords: Readonly<Record<string, string>>): Promise<string> => {
    const manifests = await renderManifests(installation);
    const template = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'weir-redis');
    const pods = manifests.find(({ kind }) => kind === 'StatefulSet')?.spec as Pods | undefined;
    const [container] = pods?.template.spec.initContainers ?? [];
    assert.ok(template && container);
    for (const each of ['passwords', 'etc/weir', 'users']) mkdirSync(join(folder, each), { recursive: true });
    for (const [user, password] of Object.entries(passwords))
      writeFileSync(join(folder, 'passwords', `${user}-password`), password);
    writeFileSync(join(folder, 'etc/weir/users.acl'), (template.data as Record<string, string>)['users.acl'] ?? '');
    const [, ...args] = container.command.map((each) =>
      each.replaceAll(/(?<=['`])\/(?=passwords|etc|users)/g, `${folder}/`),
    );
    const ran = await spawnProcess({ command: process.execPath, args, mayExit: true });
    const { code } = await ran.exited;
    if (code !== 0) throw new Error(ran.output());
    return join(folder, 'users/users.acl');
  };

  test('is rendered identically twice and without a Secret', async () => {
    const first = await renderChart(installation);
    assert.equal(await renderChart(installation), first);
    assert.doesNotMatch(first, /^kind: Secret$/m);
  });

  test('restarts Redis when the permissions of its users change', async () => {
    const checksum = async (...settings: readonly string[]): Promise<string | undefined> =>
      /checksum\/files: (\S+)/.exec(await renderChart(installation, ...settings))?.[1];
    assert.notEqual(await checksum('--set=fleet=another'), await checksum());
  });

  test('generates only a missing Secret, with new content at each rendering', async () => {
    const without = (value: string): Promise<string> => renderChart(installation, `--set=${value}=`);
    const one = [
      ['proxy.admin.tls.existingSecret', ['weir-ca', 'weir-proxy-tls']],
      ['adminToken.existingSecret', ['weir-admin']],
      ['redis.auth.existingSecret', ['weir-redis-users']],
      ['tls.fleetSecret', ['weir-fleet']],
    ] as const;
    for (const [value, secrets] of one) {
      const rendered = await without(value);
      const made = [...rendered.matchAll(/^kind: Secret\nmetadata:\n {2}name: (.+)$/gm)].map(([, name]) => name);
      assert.deepEqual(made.sort(), secrets, value);
      assert.notEqual(await without(value), rendered, value);
    }
  });

  test('gives the users of Redis the passwords of the Secret, including special characters', async () => {
    await using folder = temporaryDirectory('users');
    const file = await usersFor(folder.path, PASSWORDS);
    await using server = await startRedis({ settings: [`aclfile ${file}`] });
    const signIn = async (user: string, password: string): Promise<string> => {
      await using client = await connectClient(server);
      const words = ['AUTH', `weir-${user}`, password];
      await client.send(`*3\r\n${words.map((each) => `$${Buffer.byteLength(each)}\r\n${each}\r\n`).join('')}`);
      return String(await client.take(/\r\n/));
    };
    for (const [user, password] of Object.entries(READ_PASSWORDS)) {
      assert.equal(await signIn(user, password), '+OK\r\n');
      assert.match(await signIn(user, 'another'), /^-WRONGPASS /);
    }
    assert.doesNotMatch(readFileSync(file, 'utf8'), /controller password/);
  });

  test('does not start Redis with an empty password, and names the user', async () => {
    await using folder = temporaryDirectory('users');
    for (const proxy of ['', '\n']) {
      const started = usersFor(folder.path, { ...PASSWORDS, proxy });
      await assert.rejects(started, /the password of proxy in redis\.auth\.existingSecret is empty/);
    }
  });

  test('follows the manual, which creates each Secret that the pods use', async () => {
    await using folder = temporaryDirectory('values');
    const page = readFileSync(new URL('../../../docs/existing-secrets.md', import.meta.url), 'utf8');
    const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text);
    const [application] = documentsIn(blocks.find((each) => each.includes('kind: Application')));
    const values = join(folder.path, 'values.yaml');
    writeFileSync(values, JSON.stringify(application?.spec.source.helm.valuesObject));
    const [plain] = INSTALLATIONS;
    assert.ok(plain);
    const rendered = await renderChart(plain, `--values=${values}`);
    assert.doesNotMatch(rendered, /^kind: Secret$/m);
    const certificates = documentsIn(blocks.find((each) => each.includes('kind: Certificate')));
    const made = [
      ...certificates.flatMap(({ kind, spec }) => (kind === 'Certificate' ? [spec.secretName] : [])),
      ...[...page.matchAll(/^kubectl create secret generic (\S+) -n weir-system/gm)].map(([, name]) => name),
    ];
    const wanted = [...rendered.matchAll(/secretName: ([^\s,}]+)|secretKeyRef: \{name: ([^\s,}]+)/g)];
    const names = new Set(wanted.map(([, mounted, read]) => mounted ?? read));
    assert.ok(names.size >= 6);
    assert.deepEqual(
      [...names].filter((name) => !made.includes(name)),
      [],
    );
  });
});

interface Documented {
  readonly kind: string;
  readonly spec: { readonly secretName: string; readonly source: { readonly helm: { readonly valuesObject: object } } };
}

const documentsIn = (text = ''): readonly Documented[] =>
  parseAllDocuments(text).map((each) => each.toJS() as Documented);
