import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCalendarDay } from '@weir/model';

test('isCalendarDay accepts the days of the calendar, alone and before a time', () => {
  for (const text of ['2026-01-31', '2026-02-28', '2028-02-29', '2000-02-29', '2026-12-31T23:59:59Z'])
    assert.equal(isCalendarDay(text), true, text);
});

test('isCalendarDay refuses days that no month has', () => {
  const days = [
    '2026-02-29',
    '2100-02-29',
    '2026-02-30',
    '2026-04-31',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '2026-01-32',
  ];
  for (const text of [...days, '2026-02-30T00:00:00Z']) assert.equal(isCalendarDay(text), false, text);
});
