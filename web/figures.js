/* What is said about a result: figures in a list, and one sentence. */
import { figure } from './plot.js';

const percent = (part, digits) => `${(100 * part).toPrecision(digits)} %`;

/** Rows of names and values. */
export function rowsOf({ energy, lowerBound, relativeGap, iterations, milliseconds, provenShare, isConstant, cliqueCount, strengthNats, moves }) {
  const rows = [['energy', figure(energy?.total)]];
  if (Number.isFinite(lowerBound)) {
    const gap = Number.isFinite(relativeGap) ? relativeGap : (energy.total - lowerBound) / Math.abs(energy.total);
    rows.push(['lower bound', figure(lowerBound)], ['gap', percent(gap, 3)]);
  }
  if (Number.isFinite(provenShare)) rows.push(['pixels proven', `${(100 * provenShare).toFixed(2)} %`]);
  if (moves) rows.push(['borders moved by', `${moves.meanOffset.toFixed(1)} px`], ['pixels changed', `${(100 * moves.changed / moves.known).toFixed(1)} %`]);
  if (iterations) rows.push(['iterations', iterations]);
  if (Number.isFinite(strengthNats)) rows.push(['strength', `${strengthNats.toPrecision(3)} nats`]);
  if (cliqueCount) rows.push(['cliques', cliqueCount]);
  if (Number.isFinite(milliseconds)) rows.push(['time', `${Math.round(milliseconds)} ms`]);
  if (isConstant) rows.push(['note', 'one label everywhere: the strength drowns the rest']);
  return rows;
}

export function showRows(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value]) => {
    const [dt, dd] = [document.createElement('dt'), document.createElement('dd')];
    dt.textContent = name;
    dd.textContent = value;
    return [dt, dd];
  }));
}

/* A distance on the size that was worked on, in pixels of the photograph. */
function movesText({ meanOffset, changed, known }, scale) {
  if (changed === 0) return 'The mask: nothing changed.';
  return `The mask: borders moved by ${(meanOffset / scale).toFixed(1)} pixels on average; ${(100 * changed / known).toFixed(1)} % of the pixels changed.`;
}

/** What happened, for the line above the picture. */
export function sentenceOf(result, picture) {
  const reduced = picture.isReduced ? ` Worked on at ${result.width} x ${result.height}; what you save is refined at ${picture.width} x ${picture.height}.` : '';
  if (result.isProof) {
    const proven = Number.isFinite(result.provenShare) ? ` ${(100 * result.provenShare).toFixed(1)} % of the pixels are certain.` : '';
    return `Proven: no labelling is better by more than ${percent(result.relativeGap, 2)}.${proven}`;
  }
  const moved = result.moves ? `${movesText(result.moves, picture.sizes.full.scale)} ` : '';
  return `${moved}Mask found in ${Math.round(result.milliseconds)} ms.${reduced}`;
}
