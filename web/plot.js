/* Energy and lower bound against time, as lines. */

const NS = 'http://www.w3.org/2000/svg';
const LEFT = 6, RIGHT = 314, TOP = 14, BOTTOM = 112;

function element(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

export const figure = (value) => (Number.isFinite(value) ? value.toLocaleString('en', { maximumSignificantDigits: 8 }) : '–');

/* Moments of one run: where time begins again, so does what is shown. */
function lastRun(trace) {
  const begin = trace.findLastIndex(({ time }, i) => i > 0 && time < trace[i - 1].time);
  return trace.slice(Math.max(0, begin));
}

/** @param trace moments of a run, oldest first */
export function drawPlot(svg, trace) {
  const lines = { energy: [], bound: [], objective: [] };
  for (const { time, bestEnergy, energy, objective, lowerBound } of lastRun(trace)) {
    const best = Number.isFinite(bestEnergy) ? bestEnergy : energy;
    if (Number.isFinite(best)) lines.energy.push([time, best]);
    if (Number.isFinite(lowerBound)) lines.bound.push([time, lowerBound]);
    if (Number.isFinite(objective)) lines.objective.push([time, objective]);
  }
  /* What a method without a bound minimizes; it shows how far it has come. */
  if (lines.bound.length) lines.objective = [];
  const points = Object.values(lines).flat();
  svg.replaceChildren(element('path', { class: 'axis', d: `M${LEFT} ${BOTTOM}H${RIGHT}` }));
  if (points.length === 0) return;
  const end = Math.max(...points.map(([t]) => t)) || 1;
  /* Where a bound rises from far below, its beginning would flatten all that follows. */
  const high = Math.max(...points.map(([, v]) => v));
  const last = lines.bound.length > 3 ? lines.bound[Math.floor(lines.bound.length / 3)][1] : Math.min(...points.map(([, v]) => v));
  const low = Math.min(last, ...[...lines.energy, ...lines.objective].map(([, v]) => v));
  const x = (t) => LEFT + (RIGHT - LEFT) * t / end;
  const y = (v) => (high > low ? BOTTOM - (BOTTOM - TOP) * (Math.max(v, low) - low) / (high - low) : (TOP + BOTTOM) / 2);
  for (const [name, line] of Object.entries(lines)) {
    if (line.length === 0) continue;
    const path = line.map(([t, v], i) => `${i ? 'L' : 'M'}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join('');
    svg.append(element('path', { class: name, d: line.length > 1 ? path : `${path}h2` }));
  }
  svg.append(element('text', { x: LEFT, y: 10, class: 'energy' }, lines.energy.length ? 'energy' : ''));
  svg.append(element('text', { x: 50, y: 10, class: 'bound' }, lines.bound.length ? 'lower bound' : ''));
  svg.append(element('text', { x: 50, y: 10 }, lines.objective.length ? 'objective of the method' : ''));
  svg.append(element('text', { x: RIGHT, y: 126, 'text-anchor': 'end' }, `${end.toFixed(2)} s`));
  svg.append(element('text', { x: LEFT, y: 126 }, `${figure(low)} to ${figure(high)}`));
}
