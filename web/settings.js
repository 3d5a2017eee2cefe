/* What the command repeats: its options as JSON (`dcrf solve --config FILE`), and the result beside them. */

export const CLIQUES = { gamma: 20, eta: 500 };

const number = (value) => String(Number(value.toPrecision(9)));

/**
 * @param state the page's: { picture, unary, result, labels }
 * @param chosen { method, strength, cliques, stem }: strength multiplies the kernels' weights
 */
export function settingsOf({ picture, unary, result, labels }, { method, strength, cliques, stem }) {
  const [spatial, bilateral] = (result.kernels ?? []).map(({ weight, ...kernel }) => ({ ...kernel, weight: number(weight * strength) }));
  const source = !unary ? { scribbles: `${stem}-strokes.png`, 'scribble-unknown': '255' }
    : unary.isArray ? { unary: unary.name, 'unary-kind': unary.kind } : { 'labels-prior': unary.name, confidence: '0.7' };
  const settings = {
    method: result?.method ?? method, ...source,
    ...(spatial ? { spatial: `${spatial.sigma},${spatial.weight}`, bilateral: `${bilateral.sigma},${bilateral.colourSigma},${bilateral.weight}` }
      : { strength: number(result.strengthNats) }),
    ...(cliques === 'none' ? {} : { cliques, gamma: CLIQUES.gamma, eta: CLIQUES.eta }),
  };
  const finite = (value) => (Number.isFinite(value) ? value : null);
  return {
    ...(result?.energy ? { energy: finite(result.energy.total), lower_bound: finite(result.lowerBound), relative_gap: finite(result.relativeGap),
      width: result.width, height: result.height } : {}),
    image: picture.name, labels: labels.map(({ name, colour }) => ({ name, colour })), settings,
  };
}
