import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseWrkReport, type WrkErrors, wrkReportErrors } from '../../src/load/wrk.ts';

const none: WrkErrors = { connect: 0, read: 0, write: 0, status: 0, timeout: 0 };
const report = { requests: 98_415, bytes: 19_191_925, microseconds: 2_000_931, requestBytes: 42, errors: none };

const output = `Running 2s test @ http://127.0.0.1:41233/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.31ms  512.00us  12.20ms   91.20%
    Req/Sec    49.31k     3.12k   55.10k    72.50%
  98415 requests in 2.00s, 18.30MB read
Requests/sec:  49184.60
Transfer/sec:      9.15MB
report {"requests":98415,"bytes":19191925,"microseconds":2000931,"requestBytes":42,"errors":{"connect":0,"read":0,"write":0,"status":0,"timeout":0}}
`;

describe('wrk reports', () => {
  test('are parsed from the line of the script', () => {
    assert.deepEqual(parseWrkReport(output), report);
  });

  test('are required: otherwise the error has the last line of wrk', () => {
    const refused = 'Running 2s test\nunable to connect to 127.0.0.1:1 Connection refused\n';
    assert.throws(() => parseWrkReport(refused), /printed no report: unable to connect to 127.0.0.1:1/);
    assert.throws(() => parseWrkReport(''), /printed no report: no output/);
  });

  test('without errors are valid', () => {
    assert.deepEqual(wrkReportErrors(report), []);
  });

  test('list every kind of error', () => {
    const errors = { ...none, status: 3, read: 1 };
    assert.deepEqual(wrkReportErrors({ ...report, errors }).sort(), ['1 read error', '3 status errors']);
  });

  test('without responses are invalid', () => {
    assert.deepEqual(wrkReportErrors({ ...report, requests: 0 }), ['no request had a response']);
  });
});
