/*
 * What `npm test` and `npm run e2e` start: fetches what the chosen tests need and lack, then becomes one `node --test`.
 *
 *   npm test                            all unit and end-to-end tests but those with real nodes
 *   npm test -- store ledger.test.ts    only files whose path contains one of these
 *   npm test -- --test-name-pattern=lua flags of node --test go through
 *   npm run e2e                         the end-to-end tests, with those
 *   npm run e2e -- cluster              only those on a cluster with real nodes: as root; builds kubelets first, once
 *
 * WEIR_CACHE   where programs are kept (default ~/.cache/weir)
 * WEIR_REQUIRE=all   what cannot run fails, instead of being left out
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
const deadline = new URL('test-runner/file-timeout.ts', import.meta.url);

const { suite, filters, flags } = parseTestArguments(process.argv.slice(2));
const files = selectTestFiles(root, { suite, filters });
if (files.length === 0) {
  console.error(`weir: no test file matches ${[suite, ...filters].join(' ')}`);
  process.exit(1);
}

const needs = files.map((file) => requirementsOf(join(root, file)));
const missing = unavailableIsolation(needs);
const programs = await providePrograms(programsToProvide(needs, new Set(missing.keys())));
const notes = skipReasons({ programs, quarters: [...missing.values()] });
const required = process.env.WEIR_REQUIRE === 'all';
for (const note of notes) console.error(`weir: ${required ? 'WEIR_REQUIRE=all, and' : 'left out, since'} ${note}`);

const ownReporter = flags.some((flag) => flag.startsWith('--test-reporter'))
  ? []
  : [`--test-reporter=${reporter}`, '--test-reporter-destination=stdout'];
process.chdir(root);
// replaces this process: signals and the exit code are then node's own
replaceProcess(
  [
    process.execPath,
    '--conditions=source',
    '--test',
    '--test-concurrency=4',
    '--test-timeout=300000',
    `--import=${deadline}`,
    ...ownReporter,
    ...flags,
    ...files,
  ],
  {
    ...process.env,
    [FOUND_PROGRAMS_VARIABLE]: JSON.stringify(Object.fromEntries(programs.map((program) => [program.name, program]))),
    [SKIP_REASONS_VARIABLE]: JSON.stringify(notes),
  },
);
