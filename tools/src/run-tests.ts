/*
 * Entry of `npm test` and `npm run e2e`: fetches the programs that the selected tests need, then runs one `node --test`.
 *
 *   npm test                            all unit and end-to-end tests, except tests with real nodes and the fault suite
 *   npm test -- store ledger.test.ts    only files whose path contains one of these words
 *   npm test -- --test-name-pattern=lua passes flags to node --test
 *   npm run e2e                         the end-to-end tests, including tests with real nodes and the fault suite
 *   npm run e2e -- cluster              only tests with real nodes; needs root and builds kubelets on the first run
 *   npm run e2e -- faults               only the fault suite, which runs for half an hour
 *
 * WEIR_CACHE=DIRECTORY   where programs are cached (default ~/.cache/weir)
 * WEIR_REQUIRE=all       fails tests that would be skipped
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FOUND_PROGRAMS_VARIABLE } from './programs/find-program.ts';
import { providePrograms } from './programs/provide-programs.ts';
import { replaceProcess } from './replace-process.ts';
import { SKIP_REASONS_VARIABLE } from './test-runner/reporter.ts';
import { programsToProvide, requirementsOf, skipReasons, unavailableIsolation } from './test-runner/requirements.ts';
import { parseTestArguments, selectTestFiles } from './test-runner/select-tests.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const reporter = fileURLToPath(new URL('test-runner/reporter.ts', import.meta.url));
/**
 * The directory of V8's code cache, which `npm ci` deletes. Each test file is a process, and many start further processes: with the cache,
 * a controller needs half the processor time to start.
 */
const compileCacheDirectory = fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url));
const fileTimeout = new URL('test-runner/file-timeout.ts', import.meta.url);

const { suite, filters, flags } = parseTestArguments(process.argv.slice(2));
const files = selectTestFiles(root, { suite, filters });
if (files.length === 0) {
  console.error(`weir: no test file matches ${[suite, ...filters].join(' ')}`);
  process.exit(1);
}

const needs = files.map((file) => requirementsOf(join(root, file)));
const missing = unavailableIsolation(needs);
const programs = await providePrograms(programsToProvide(needs, new Set(missing.keys())));
const reasons = skipReasons({ programs, isolation: [...missing.values()] });
const required = process.env.WEIR_REQUIRE === 'all';
for (const reason of reasons)
  console.error(`weir: ${required ? 'WEIR_REQUIRE=all, but' : 'skipping tests:'} ${reason}`);

const reporterFlags = flags.some((flag) => flag.startsWith('--test-reporter'))
  ? []
  : [`--test-reporter=${reporter}`, '--test-reporter-destination=stdout'];
process.chdir(root);
// Replaces the process, so that node --test receives the signals and determines the exit code.
replaceProcess(
  [
    process.execPath,
    '--conditions=source',
    '--test',
    '--test-concurrency=4',
    '--test-timeout=300000',
    `--import=${fileTimeout}`,
    ...reporterFlags,
    ...flags,
    ...files,
  ],
  {
    ...process.env,
    [FOUND_PROGRAMS_VARIABLE]: JSON.stringify(Object.fromEntries(programs.map((program) => [program.name, program]))),
    [SKIP_REASONS_VARIABLE]: JSON.stringify(reasons),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? compileCacheDirectory,
  },
);
