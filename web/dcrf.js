/* dcrf in JavaScript: the best labelling of an image under a dense conditional random field, and a proof of
 * how good it is. Types and explanations are in dcrf.d.ts. */
import { load } from './load.js';
import { Session } from './session.js';
import { NOTHING } from './strokes.js';

export { canShareMemory, hasVectors, Library, load } from './load.js';
export { Session } from './session.js';

let shared;

/** Solve one problem; the module is loaded with the first. */
export async function solve({ image, unary, labels, kind, layout, kernels, strength = 'auto', cliques, library,
  ...settings }) {
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
export async function scribble({ image, strokes, labels, library }) {
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
export async function refine({ image, mask, labels, library }) {
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
