// The picture of the benchmark `limits`: connections admitted per second over time, one line for each subject.
import type { LimitSubjectName } from './limit-subjects.ts';
import { windowSums } from './limits-result.ts';
import { LIMIT, PHASES, phaseStart, TOTAL_SECONDS } from './phases.ts';

const WIDTH = 900;
const HEIGHT = 340;
const LEFT = 48;
const RIGHT = 12;
const TOP = 44;
const BOTTOM = 34;
const MAX_PART = 1.25;
const TENTHS = 10;

/** Colours that can be read on white and on black, with a dash for readers who cannot tell colours apart. */
const STYLES: Readonly<
  Record<LimitSubjectName, { readonly colour: string; readonly dash: string; readonly width: number }>
> = {
  weir: { colour: '#1f83e0', dash: 'none', width: 2.2 },
  haproxy: { colour: '#d9730d', dash: '6 3', width: 1.4 },
  envoy: { colour: '#9a5bd6', dash: '2 3', width: 1.6 },
};
const GREY = '#808080';

/** `admitted` are connections by tenth of a second from the start of the first phase. */
export function limitsChart(
  subjects: readonly { readonly name: LimitSubjectName; readonly admitted: readonly number[] }[],
): string {
  const lines = subjects.map(({ name, admitted }) => {
    const { colour, dash, width } = STYLES[name];
    const points = windowSums(admitted, TENTHS).map(
      (sum, index) => `${x((index + TENTHS) / TENTHS)},${y(sum / LIMIT)}`,
    );
    return `<polyline fill="none" stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash}" points="${points.join(' ')}"/>`;
  });
  const legend = subjects.map(({ name }, index) => {
    const { colour, dash, width } = STYLES[name];
    const left = LEFT + 110 * index;
    const line = `<line x1="${left}" y1="12" x2="${left + 26}" y2="12" stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash}"/>`;
    return `${line}${text(left + 32, 16, name)}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">
<title>Connections admitted in the last second, in percent of the limit</title>
${legend.join('\n')}
${[0, 0.25, 0.5, 0.75, 1].map(gridLine).join('\n')}
${limitLine(1.1, 'bar: 110 %')}
${PHASES.map(phaseLabel).join('\n')}
${Array.from({ length: Math.floor(TOTAL_SECONDS / 10) + 1 }, (_, tens) => text(x(10 * tens), HEIGHT - 12, `${10 * tens} s`, 'middle')).join('\n')}
${lines.join('\n')}
</svg>
`;
}

function gridLine(part: number): string {
  const line = `<line x1="${LEFT}" y1="${y(part)}" x2="${WIDTH - RIGHT}" y2="${y(part)}" stroke="${GREY}" stroke-opacity="${part === 1 ? 0.9 : 0.3}"/>`;
  return `${line}${text(LEFT - 6, y(part) + 4, `${100 * part} %`, 'end')}`;
}

function limitLine(part: number, label: string): string {
  const line = `<line x1="${LEFT}" y1="${y(part)}" x2="${WIDTH - RIGHT}" y2="${y(part)}" stroke="${GREY}" stroke-dasharray="4 4"/>`;
  return `${line}${text(WIDTH - RIGHT, y(part) - 5, label, 'end')}`;
}

function phaseLabel({ name }: (typeof PHASES)[number]): string {
  const start = x(phaseStart(name));
  return `<line x1="${start}" y1="${TOP - 14}" x2="${start}" y2="${HEIGHT - BOTTOM}" stroke="${GREY}" stroke-opacity="0.5"/>${text(start + 4, TOP - 4, name)}`;
}

function text(left: number, top: number, content: string, anchor: 'start' | 'middle' | 'end' = 'start'): string {
  return `<text x="${round(left)}" y="${round(top)}" fill="${GREY}" text-anchor="${anchor}">${content}</text>`;
}

function x(second: number): number {
  return round(LEFT + ((WIDTH - LEFT - RIGHT) * second) / TOTAL_SECONDS);
}

function y(part: number): number {
  return round(HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(part, MAX_PART)) / MAX_PART);
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}
