// Formats numbers with units, in powers of 1,000 as usual for networks and quotas. These functions are a copy of the CLI's
// output/amounts.ts, because the page has no build step and cannot import from the CLI.

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

function scaled(amount) {
  let value = amount;
  let step = 0;
  while (value >= 999.5 && step < PREFIXES.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${step === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${PREFIXES[step]}`;
}

export const bytes = (amount) => `${scaled(amount)}B`;

export const bitRate = (amount) => `${scaled(amount)}bit/s`;

export function count(amount) {
  const isSmallFraction = amount !== 0 && amount < 10 && !Number.isInteger(amount);
  return isSmallFraction ? amount.toFixed(1) : Math.round(amount).toLocaleString('en-US');
}

export function plural(amount, one, many = `${one}s`) {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}

/** Formats a Date or an RFC 3339 text as local time. Adds the date if the date is not today. */
export function time(value) {
  const date = new Date(value);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}
