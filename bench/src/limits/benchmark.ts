import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { insideNamespace, providePrograms, startRedis } from '@weir/tools';
import { startEchoBackend } from '../backends/start-backends.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { compileProxy } from '../processes/weir-proxy.ts';
import { NAMESPACE_NODES } from '../propagation/topology.ts';
import { provideRedis, provideSubjects } from '../provide-programs.ts';
import { formatHeadline, logProgress, REPOSITORY_ROOT, startRun } from '../report/run-metadata.ts';
import { saveOrExplain } from '../report/save-result.ts';
import {
  LIMIT_SUBJECTS,
  type LimitSubjectName,
  type LimitSubjectOptions,
  startLimitSubject,
} from './limit-subjects.ts';
import { limitsChart } from './limits-chart.ts';
import { type LimitsResult, limitsRows, limitsTable } from './limits-result.ts';
import type { ConnectionCounts, LimitsLoadRpc } from './load-process.ts';
import type { LimitsOptions } from './options.ts';
import { LIMIT, PHASES, PROXIES, phaseStart, WARM_UP_SECONDS } from './phases.ts';

type MeasuredSubject = ConnectionCounts & { readonly name: LimitSubjectName };

export async function benchmarkLimits(options: LimitsOptions, signal: AbortSignal): Promise<number> {
  const redis = await provideRedis();
  const { versions, subjects } = await provideSubjects({ subjects: options.subjects, usesDefaultSubjects: true }, []);
  const program = await compileProxy();
  await enterNamespace();
  const endRun = startRun({ redis, ...versions });
  await using server = await startRedis();
  await using backend = await startEchoBackend();
  const endpoint = { host: '127.0.0.1', port: backend.ports.echo };
  const measured: MeasuredSubject[] = [];
  for (const name of subjects) {
    if (signal.aborted) break;
    logProgress(`${name}: ${PHASES.map((phase) => phase.name).join(', ')}`);
    measured.push({ name, ...(await measure(name, { redis: server.url, program, endpoint }, options.seed)) });
  }
  const rows = measured.flatMap((subject) => limitsRows(subject.name, subject));
  const result: LimitsResult = { ...endRun(), limit: LIMIT, rows };
  console.log(`${formatHeadline(result, `${PROXIES} proxies`, `limit ${LIMIT} new connections/s`)}\n`);
  console.log(limitsTable(rows).join('\n'));
  const path = join('bench', 'results', 'limits.svg');
  mkdirSync(join(REPOSITORY_ROOT, 'bench', 'results'), { recursive: true });
  writeFileSync(join(REPOSITORY_ROOT, path), limitsChart(measured));
  console.log(`\npicture: ${path}`);
  const isComplete = measured.length === LIMIT_SUBJECTS.length && !signal.aborted;
  saveOrExplain('limits', result, { reasonToDiscard: isComplete ? undefined : 'a result needs all subjects' });
  return 0;
}

/** Enters a network namespace with the addresses of the nodes. Must follow all downloads, because there is no route to the internet. */
async function enterNamespace(): Promise<void> {
  await providePrograms(['ip']);
  const { skip } = insideNamespace({ addresses: NAMESPACE_NODES.map(({ address }) => address) });
  if (skip !== undefined) throw new Error(skip);
}

async function measure(name: LimitSubjectName, options: LimitSubjectOptions, seed: number): Promise<ConnectionCounts> {
  await using subject = await startLimitSubject(name, options);
  await using load = new RpcProcess<LimitsLoadRpc>(new URL('./load-process.ts', import.meta.url), []);
  const running = load.call('run', subject.proxies, seed);
  // A failure of the subject ends the load process, whose error would hide the failure.
  running.catch(() => undefined);
  const startedAt = performance.now();
  for (const phase of PHASES) {
    const beginsAt = startedAt + 1_000 * (WARM_UP_SECONDS + phaseStart(phase.name));
    if (phase.killAt === undefined || phase.restartAt === undefined) continue;
    await sleep(Math.max(0, beginsAt + 1_000 * phase.killAt - performance.now()));
    await subject.killLast();
    await sleep(Math.max(0, beginsAt + 1_000 * phase.restartAt - performance.now()));
    await subject.restartLast();
  }
  return await running;
}
