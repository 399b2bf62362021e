/*
 * Ends the process of a test file after a timeout and prints the open handles. `npm test` loads this module into the process of every
 * test file. node --test limits the time of a test but not of a file, so a file with an open handle would block the run forever.
 */
/** The fault suite is one file that runs for half an hour. */
const FILE_TIMEOUT_MINUTES = process.argv[1]?.includes('/e2e/test/faults/') ? 45 : 10;

// The variable is set in the processes of test files, but not in the process of node --test itself.
if (process.env.NODE_TEST_CONTEXT) {
  const failFile = (): void => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ');
    console.error(`${process.argv[1]}: did not exit within ${FILE_TIMEOUT_MINUTES} minutes; open handles: ${open}`);
    process.exit(1);
  };
  setTimeout(failFile, FILE_TIMEOUT_MINUTES * 60_000).unref();
}
