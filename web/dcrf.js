/* dcrf in JavaScript: the best labelling of an image under a dense conditional random field, and a proof of
 * how good it is. Types and explanations are in dcrf.d.ts. */
import { load } from './load.js';
import { Session } from './session.js';
import { NOTHING } from './strokes.js';

export { canShareMemory, hasVectors, Library, load } from './load.js';
export { Session } from './session.js';

let shared;

/* Arguments that the rest stands on; `ways` is all that the missing one can be. */
function need(value, name, ways) {
  if (value?.length === undefined) throw new TypeError(`${name} is missing: ${ways}`);
}

function needImage(image) {
  need(image?.data, 'image', '{ data, width, height }, with 1, 3 or 4 bytes to a pixel');
}

const WAYS = 'give solve() a unary, an array of energies, probabilities or logits (kind says which); refine() a mask, the label of '
  + 'each pixel; or scribble() strokes, the labels of some pixels and 255 elsewhere';

/** Solve one problem; the module is loaded with the first. */
export async function solve({ image, unary, labels, kind, layout, kernels, strength = 'auto', cliques, library,
  ...settings } = {}) {
  needImage(image);
  need(unary, 'unary', WAYS);
  library ??= await (shared ??= load({ threads: 1 }));
  const count = labels ?? unary.length / (image.width * image.height);
  if (labels === undefined && !Number.isInteger(count))
    throw new Error(`unary has ${unary.length} numbers, which is not a whole number for each of `
      + `${image.width} x ${image.height} pixels`);
  const session = new Session(library, image, count);
  try {
    session.setUnary(unary, { kind, layout });
    if (kernels) for (const kernel of kernels) session.addKernel(kernel);
    else session.useDefaultKernels();
    if (strength !== 'auto') session.strength = strength;
    session.setCliques(cliques);
    return await session.run(settings);
  } finally {
    session.free();
  }
}

/** From strokes to a mask. */
export async function scribble({ image, strokes, labels, library } = {}) {
  needImage(image);
  need(strokes, 'strokes', WAYS);
  library ??= await (shared ??= load({ threads: 1 }));
  const largest = strokes.reduce((most, label) => (label !== NOTHING && label > most ? label : most), 0);
  const session = new Session(library, image, labels ?? largest + 1);
  try {
    session.scribble(strokes);
    return session.result();
  } finally {
    session.free();
  }
}

/** Move the borders of a rough mask to where the image has them. */
export async function refine({ image, mask, labels, library } = {}) {
  needImage(image);
  need(mask, 'mask', WAYS);
  library ??= await (shared ??= load({ threads: 1 }));
  const largest = mask.reduce((most, label) => Math.max(most, label), 0);
  const session = new Session(library, image, labels ?? Math.max(2, largest + 1));
  try {
    session.setMask(mask);
    return { ...await session.run(), moves: session.maskMoves() };
  } finally {
    session.free();
  }
}
