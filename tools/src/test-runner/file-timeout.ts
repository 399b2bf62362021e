/*
 * Loaded into every test file's process by `npm test`. node --test bounds each test, but not a file: one whose tests are over and
 * that left something open would hold up the run for ever. It fails, and says what it waits for.
 */
const FILE_TIMEOUT_MINUTES = 10;

// set in the processes of test files, not in the runner's own
if (process.env.NODE_TEST_CONTEXT) {
  const giveUp = (): void => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ');
    console.error(`${process.argv[1]}: has not ended in ${FILE_TIMEOUT_MINUTES} minutes; still open: ${open}`);
    process.exit(1);
  };
  setTimeout(giveUp, FILE_TIMEOUT_MINUTES * 60_000).unref();
}
