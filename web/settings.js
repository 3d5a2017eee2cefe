/* What the command repeats: its options as JSON (`dcrf solve --config FILE`), and the result beside them. */

export const CLIQUES = { gamma: 20, eta: 500 };
/* “Prove it”: the LP until the gap is small or its time is over, then which labels can be excluded. */
export const PROOF = { gap: 1e-5, iterations: 1000, boundS: 30, excludeS: 10 };
const ITERATIONS = { mf: 10, qp: 100, lp: 40 };

/* What puts borders on the edges of a large photograph; a cell is what one pixel of the reduced size covers. */
export const EDGE_ITERATIONS = 5;
export const edgeKernels = (cellPx) => [{ sigma: 1, weight: 0.5 }, { sigma: cellPx, colourSigma: 8, weight: 1 }];

const number = (value) => String(Number(value.toPrecision(9)));

const kernelOptions = ([spatial, bilateral], strength) => ({
  spatial: `${number(spatial.sigma)},${number(spatial.weight * strength)}`,
  bilateral: `${number(bilateral.sigma)},${number(bilateral.colourSigma)},${number(bilateral.weight * strength)}`,
});

/* Strokes and masks have kernels of their own, which the command knows; only others are said. */
function modelOptions({ unary, result }, { strength, cliques, stem }) {
  const source = !unary ? { scribbles: `${stem}-strokes.png`, 'scribble-unknown': '255' }
    : unary.isArray ? { unary: unary.name, 'unary-kind': unary.kind, ...(unary.scale === 1 ? {} : { 'unary-scale': number(unary.scale) }) }
      : { 'labels-prior': unary.name };
  const weights = strength === 1 ? {} : result.kernels ? kernelOptions(result.kernels, strength) : { 'strength-factor': number(strength) };
  return { ...source, ...weights, ...(cliques === 'none' ? {} : { cliques, gamma: CLIQUES.gamma, eta: CLIQUES.eta }) };
}

function solverOptions({ result: { isProof, method, iterations } }) {
  return isProof ? { method, iterations, gap: PROOF.gap } : { method, iterations: ITERATIONS[method] };
}

/* A photograph that was worked on at a reduced size: its probabilities there, and what refines the edges. */
function edgeOptions({ picture, result }, stem) {
  return { unary: `${stem}-probabilities.npy`, 'unary-kind': 'probabilities', ...kernelOptions(edgeKernels(picture.width / result.width), 1),
    method: 'mf', iterations: EDGE_ITERATIONS, 'no-polish': true };
}

/**
 * @param state the page's: { picture, unary, result, labels }
 * @param chosen { method, strength, cliques, stem }: strength multiplies the kernels' weights
 */
export function settingsOf(state, chosen) {
  const { picture, unary, result, labels } = state, { stem } = chosen;
  const finite = (value) => (Number.isFinite(value) ? value : null);
  const worked = { ...modelOptions(state, chosen), ...solverOptions(state) };
  return {
    energy: finite(result.energy.total), lower_bound: finite(result.lowerBound), relative_gap: finite(result.relativeGap),
    width: result.width, height: result.height, image: picture.name, labels: labels.map(({ name, colour }) => ({ name, colour })),
    ...(picture.isReduced ? { worked_on: worked } : {}),
    settings: { ...(picture.isReduced ? edgeOptions(state, stem) : worked), palette: `${stem}-settings.json` },
    page: { strength: chosen.strength, cliques: chosen.cliques, method: chosen.method, source: unary ? 'file' : 'strokes' },
  };
}
