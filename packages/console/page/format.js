// Numbers with units, in powers of 1,000 as usual for networks and quotas. The CLI has the same functions in output/amounts.ts, which
// the page cannot import, because it has no build step.

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

/** Returns the local time of a Date or an RFC 3339 text. Adds the date if it is not today. */
export function time(value) {
  const date = new Date(value);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}
