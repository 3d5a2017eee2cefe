/* The views: labels, confidence and proofs as colours to lay over the photograph. All at the size of the result. */

const OPAQUE = 255;
const UNPROVEN_LIGHT = 0.25, UNPROVEN_DARK = 0.75;

/* Whether the label to the right or below is another. */
function isBoundary(labels, width, height, a) {
  const x = a % width;
  return (x + 1 < width && labels[a] !== labels[a + 1]) || (a + width < width * height && labels[a] !== labels[a + width]);
}

/* Each gives [colour, opacity] for a pixel, or nothing. */
const PAINTERS = {
  overlay: (a, { labels, colours, opacity }) => [colours[labels[a]], opacity],
  mask: (a, { labels, colours }) => [colours[labels[a]], 1],
  boundaries: (a, { labels, width, height }) => (isBoundary(labels, width, height, a) ? [[255, 255, 0], 1] : undefined),
  confidence(a, { confidence }) {
    const grey = 255 * confidence[a];
    return [[grey, grey, grey], 1];
  },
  /* What is not proven is dark and striped, so that colour alone does not say it. */
  proven(a, { labels, colours, proven, width, opacity }) {
    if (proven?.[a]) return [colours[labels[a]], opacity];
    return (a % width + Math.floor(a / width)) % 6 < 3 ? [[255, 255, 255], UNPROVEN_LIGHT] : [[0, 0, 0], UNPROVEN_DARK];
  },
};
PAINTERS.beside = PAINTERS.overlay;

/** @param result { labels, confidence, proven, width, height } */
export function compose(view, result, colours, opacity) {
  const made = new Uint8ClampedArray(4 * result.labels.length);
  const scene = { ...result, colours, opacity };
  const paint = PAINTERS[view];
  for (let a = 0; a < result.labels.length; a++) {
    const painted = paint(a, scene);
    if (!painted) continue;
    const [[r, g, b], part] = painted;
    made[4 * a] = r;
    made[4 * a + 1] = g;
    made[4 * a + 2] = b;
    made[4 * a + 3] = OPAQUE * part;
  }
  return new ImageData(made, result.width, result.height);
}

/** The strokes as a picture that is transparent elsewhere. */
export function strokesPicture(map, width, height, colours, nothing) {
  const rgba = new Uint8ClampedArray(4 * map.length);
  map.forEach((label, a) => {
    if (label !== nothing) rgba.set([...colours[label], OPAQUE], 4 * a);
  });
  return new ImageData(rgba, width, height);
}
