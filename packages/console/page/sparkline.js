import { svg } from './dom.js';

const WIDTH = 240;
const HEIGHT = 48;
const SECONDS = 120;

/**
 * Creates a graph of the last two minutes: an area for outbound traffic and a line for inbound traffic. The graph is hidden from screen
 * readers, because the page shows the rates as text, too.
 */
export function sparkline() {
  const area = svg('path', { class: 'spark-out' });
  const line = svg('path', { class: 'spark-in' });
  const node = svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    area,
    line,
  );
  return {
    node,
    /** Draws `points`, which are `{at, in, out}` in ascending order. `at` and `now` are in milliseconds since the epoch. */
    update(points, now) {
      const top = Math.max(1, ...points.map((point) => Math.max(point.in, point.out)));
      const x = (point) => (WIDTH - ((now - point.at) / (SECONDS * 1000)) * WIDTH).toFixed(1);
      const y = (value) => (HEIGHT - 1 - (value / top) * (HEIGHT - 4)).toFixed(1);
      const path = (key) =>
        points.map((point, index) => `${index === 0 ? 'M' : 'L'}${x(point)} ${y(point[key])}`).join('');
      const first = points[0];
      const last = points.at(-1);
      if (first === undefined || last === undefined) return;
      area.setAttribute('d', `${path('out')}L${x(last)} ${HEIGHT}L${x(first)} ${HEIGHT}Z`);
      line.setAttribute('d', path('in'));
    },
  };
}

/** Returns the points with `point` appended and without points that are older than two minutes. */
export function withPoint(points, point) {
  return [...points.filter((each) => each.at > point.at - SECONDS * 1000 && each.at < point.at), point];
}
