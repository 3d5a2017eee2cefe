/* The views: labels, confidence and proofs as colours over a picture. All at the size of the result. */

const OVERLAY = 0.55;
const UNPROVEN_SHADE = 0.25;

function mix(rgba, at, [r, g, b], part) {
  rgba[at] += part * (r - rgba[at]);
  rgba[at + 1] += part * (g - rgba[at + 1]);
  rgba[at + 2] += part * (b - rgba[at + 2]);
}

/* Whether the label to the right or below is another. */
function isBoundary(labels, width, height, a) {
  const x = a % width;
  return (x + 1 < width && labels[a] !== labels[a + 1]) || (a + width < width * height && labels[a] !== labels[a + width]);
}

const PAINTERS = {
  overlay: (rgba, a, { labels, colours }) => mix(rgba, 4 * a, colours[labels[a]], OVERLAY),
  mask: (rgba, a, { labels, colours }) => mix(rgba, 4 * a, colours[labels[a]], 1),
  boundaries(rgba, a, { labels, width, height }) {
    if (isBoundary(labels, width, height, a)) mix(rgba, 4 * a, [255, 255, 0], 1);
  },
  confidence(rgba, a, { confidence }) {
    const grey = 255 * confidence[a];
    mix(rgba, 4 * a, [grey, grey, grey], 1);
  },
  /* What is not proven is dark and striped, so that colour alone does not say it. */
  proven(rgba, a, { labels, colours, proven, width }) {
    const stripe = (a % width + Math.floor(a / width)) % 6 < 3;
    if (proven?.[a]) mix(rgba, 4 * a, colours[labels[a]], OVERLAY);
    else mix(rgba, 4 * a, stripe ? [255, 255, 255] : [0, 0, 0], stripe ? UNPROVEN_SHADE : 1 - UNPROVEN_SHADE);
  },
};
PAINTERS.beside = PAINTERS.overlay;

/** @param result { labels, confidence, proven, width, height } */
export function compose(view, rgba, result, colours) {
  const made = new Uint8ClampedArray(rgba);
  const scene = { ...result, colours };
  const paint = PAINTERS[view];
  for (let a = 0; a < result.labels.length; a++) paint(made, a, scene);
  return new ImageData(made, result.width, result.height);
}

/** The strokes as a picture that is transparent elsewhere. */
export function strokesPicture(map, width, height, colours, nothing) {
  const rgba = new Uint8ClampedArray(4 * map.length);
  map.forEach((label, a) => {
    if (label !== nothing) rgba.set([...colours[label], 255], 4 * a);
  });
  return new ImageData(rgba, width, height);
}
