/* What visitors take with them, at the size of the photograph: mask, cut-out, overlay, strokes, settings. */
import { encodePng } from './files.js';
import { canvasOf } from './picture.js';

const ROWS = 256; /* at a time, so that large photographs need no second copy */

/* How much of a pixel's neighbourhood has the label: 1 inside, 0 outside, between on the border. */
function coverage(map, width, height, x, y, label) {
  let inside = 0, all = 0;
  for (let v = Math.max(0, y - 1); v <= Math.min(height - 1, y + 1); v++)
    for (let u = Math.max(0, x - 1); u <= Math.min(width - 1, x + 1); u++) {
      const weight = (u === x ? 2 : 1) * (v === y ? 2 : 1);
      all += weight;
      if (map[v * width + u] === label) inside += weight;
    }
  return inside / all;
}

/* Change the photograph's pixels, rows after rows: `change(rgba, at, x, y)`. */
async function changedPhotograph({ bitmap, width, height }, change) {
  const canvas = canvasOf(width, height), context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  for (let top = 0; top < height; top += ROWS) {
    const image = context.getImageData(0, top, width, Math.min(ROWS, height - top));
    for (let y = 0, at = 0; y < image.height; y++) for (let x = 0; x < width; x++, at += 4) change(image.data, at, x, top + y);
    context.putImageData(image, 0, top);
  }
  return canvas.convertToBlob({ type: 'image/png' });
}

/** A PNG of numbers in the labels' colours. */
export const maskPng = (map, { width, height }, colours) => encodePng(map, width, height, colours);

/** The pixels of one label; all others are transparent, those on the border partly. */
export function cutOut(map, pixels, label) {
  const { width, height } = pixels;
  return changedPhotograph(pixels, (rgba, at, x, y) => {
    const alpha = coverage(map, width, height, x, y, label);
    if (alpha < 1) rgba[at + 3] *= alpha;
  });
}

/** The photograph with the labels' colours laid over it. */
export function overlay(map, pixels, colours, opacity) {
  return changedPhotograph(pixels, (rgba, at, x, y) => {
    const colour = colours[map[y * pixels.width + x]];
    for (let c = 0; c < 3; c++) rgba[at + c] += opacity * (colour[c] - rgba[at + c]);
    rgba[at + 3] = 255;
  });
}

/** Numbers as a .npy of the shape (H, W, labels). */
export function npyOf(values, shape) {
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
  const text = `${head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11)}\n`, start = new Uint8Array(10 + text.length);
  start.set([0x93, 78, 85, 77, 80, 89, 1, 0, text.length & 255, text.length >> 8]);
  start.set(new TextEncoder().encode(text), 10);
  return new Blob([start, values]);
}
