export type WrkReport = {
  /** Answers that came whole. */
  readonly requests: number;
  /** What wrk has read, in bytes. */
  readonly bytes: number;
  readonly microseconds: number;
  readonly requestBytes: number;
  readonly errors: WrkErrors;
};

/** `status`: answers of 400 and above. */
export type WrkErrors = Readonly<Record<'connect' | 'read' | 'write' | 'status' | 'timeout', number>>;

/** Reads the line that `wrk-report.lua` prints. Throws when there is none. */
export function parseWrkReport(output: string): WrkReport {
  const [, json] = /^report (\{.*\})$/m.exec(output) ?? [];
  if (json === undefined) throw new Error(`wrk gave no report: ${output.trim().split('\n').at(-1) || 'no output'}`);
  return JSON.parse(json) as WrkReport;
}

/** What makes a run invalid, in words; empty when it is fine. */
export function wrkReportErrors({ requests, errors }: WrkReport): string[] {
  const failed = Object.entries(errors).filter(([, count]) => count > 0);
  const complaints = failed.map(([kind, count]) => `${count} ${kind} error${count === 1 ? '' : 's'}`);
  return requests === 0 ? ['no request was answered', ...complaints] : complaints;
}
