/* A photograph, decoded, at the sizes that are worked on: small while painting, larger when the brush rests. */
import { decodeTiff, isTiff } from './tiff.js';

const FULL_PIXELS = 1_000_000;
/* A mask of the strokes in well under a second. */
const DRAFT_PIXELS = 160_000, DRAFT_FROM_PIXELS = 320_000;
/* While the brush is down. Below the second number a preview saves nothing that anyone would notice. */
const PREVIEW_PIXELS = 40_000, PREVIEW_FROM_PIXELS = 80_000;
/* Larger ones are shown at the size they are worked on: a browser may not have the memory twice. */
const SHOWN_PIXELS = 50_000_000;
const MORE_REDUCTIONS = 3;

export const canvasOf = (width, height) => new OffscreenCanvas(width, height);

/* By which whole number both sides are best divided, so that a reduced pixel covers whole ones of the photograph. */
function reductionOf(width, height, most) {
  const least = Math.ceil(Math.sqrt(width * height / most) - 1e-9);
  for (let k = least; k <= least + MORE_REDUCTIONS; k++) if (width % k === 0 && height % k === 0) return k;
  return Math.sqrt(width * height / most);
}

/* The picture at a size of at most `most` pixels: { width, height, scale, rgba }. */
function atMost(bitmap, most) {
  const reduction = bitmap.width * bitmap.height > most ? reductionOf(bitmap.width, bitmap.height, most) : 1;
  const width = Math.max(1, Math.round(bitmap.width / reduction)), height = Math.max(1, Math.round(bitmap.height / reduction));
  const context = canvasOf(width, height).getContext('2d', { willReadFrequently: true, colorSpace: 'srgb' });
  context.fillStyle = 'white'; /* behind what is transparent */
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, 0, 0, width, height);
  return { width, height, scale: width / bitmap.width, rgba: context.getImageData(0, 0, width, height).data };
}

/** A bitmap of any picture file, TIFF included; undefined where it is none. */
export async function bitmapOf(blob) {
  const options = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };
  const head = new Uint8Array(await blob.slice(0, 4).arrayBuffer());
  if (isTiff(head)) {
    const { rgba, width, height, note } = await decodeTiff(await blob.arrayBuffer());
    const bitmap = await createImageBitmap(new ImageData(rgba, width, height), options);
    return Object.assign(bitmap, { note });
  }
  return createImageBitmap(blob, options).catch(() => undefined);
}

/** Decode a file. The error of a file that is no picture says so. */
export async function decode(blob, name) {
  const bitmap = await bitmapOf(blob).catch((error) => { throw new Error(`${name} cannot be shown: ${error.message}`); });
  if (!bitmap) throw new Error(`${name} cannot be shown: it is no picture that this browser knows, it is broken, or it is too large`);
  const { width, height, note } = bitmap;
  const full = atMost(bitmap, FULL_PIXELS), sizes = { full };
  if (full.width * full.height > DRAFT_FROM_PIXELS) sizes.draft = atMost(bitmap, DRAFT_PIXELS);
  if (full.width * full.height > PREVIEW_FROM_PIXELS) sizes.preview = atMost(bitmap, PREVIEW_PIXELS);
  const isShown = width * height <= SHOWN_PIXELS;
  if (!isShown) bitmap.close();
  return { name, blob, note, width, height, sizes, isReduced: full.width < width, bitmap: isShown ? bitmap : undefined };
}

/** The photograph's own pixels, for what is done at its full size; close() gives a bitmap back that was made for it. */
export async function openPixels(picture) {
  const bitmap = picture.bitmap ?? await bitmapOf(picture.blob);
  if (!bitmap) throw new Error(`${picture.name} is too large to be read again at its full size`);
  return {
    width: picture.width, height: picture.height, bitmap,
    pixelsOf({ left, top, right, bottom }) {
      const context = canvasOf(right - left, bottom - top).getContext('2d', { willReadFrequently: true, colorSpace: 'srgb' });
      context.fillStyle = 'white';
      context.fillRect(0, 0, right - left, bottom - top);
      context.drawImage(bitmap, -left, -top);
      return context.getImageData(0, 0, right - left, bottom - top).data;
    },
    close() {
      if (bitmap !== picture.bitmap) bitmap.close();
    },
  };
}
