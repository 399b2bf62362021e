/*
 * Loaded into the process of every test file by `npm test`. node --test limits each test but not a file: a file that left a handle open
 * after its tests would block the run forever. This timeout ends the process and prints the open handles.
 */
const FILE_TIMEOUT_MINUTES = 10;

// Set in the processes of test files, but not in the process of node --test itself.
if (process.env.NODE_TEST_CONTEXT) {
  const failFile = (): void => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ');
    console.error(`${process.argv[1]}: did not exit within ${FILE_TIMEOUT_MINUTES} minutes; open handles: ${open}`);
    process.exit(1);
  };
  setTimeout(failFile, FILE_TIMEOUT_MINUTES * 60_000).unref();
}
