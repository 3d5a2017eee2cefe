/* A photograph, decoded, at the sizes that are worked on: small while painting, then as large as is sensible. */

const FULL_PIXELS = 1_000_000;
const PREVIEW_PIXELS = 40_000;
/* Below this a preview saves nothing that anyone would notice. */
const PREVIEW_FROM_PIXELS = 80_000;

function canvasOf(width, height) {
  return new OffscreenCanvas(width, height);
}

/* The picture at a size of at most `most` pixels: { width, height, scale, rgba }. */
function atMost(bitmap, most) {
  const scale = Math.min(1, Math.sqrt(most / (bitmap.width * bitmap.height)));
  const width = Math.max(1, Math.round(bitmap.width * scale)), height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvasOf(width, height).getContext('2d', { willReadFrequently: true, colorSpace: 'srgb' });
  context.fillStyle = 'white'; /* behind what is transparent */
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, 0, 0, width, height);
  return { width, height, scale: width / bitmap.width, rgba: context.getImageData(0, 0, width, height).data };
}

/** Decode a file. The error of a file that is no picture says so. */
export async function decode(blob, name) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
  } catch {
    throw new Error(`${name} cannot be shown: it is no picture that this browser knows, it is broken, or it is too large`);
  }
  try {
    return pictureOf(bitmap, name);
  } finally {
    bitmap.close();
  }
}

function pictureOf(bitmap, name) {
  const full = atMost(bitmap, FULL_PIXELS);
  const sizes = { full };
  if (full.width * full.height > PREVIEW_FROM_PIXELS) sizes.preview = atMost(bitmap, PREVIEW_PIXELS);
  return { name, width: bitmap.width, height: bitmap.height, sizes, isReduced: full.scale < 1 };
}

/** Numbers of a label map (any picture: its red channel, or an indexed one's colours in the order they are met). */
export async function decodeMap(blob, width, height) {
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' }).catch(() => {
    throw new Error('the label map cannot be read: it is no picture that this browser knows, or it is broken');
  });
  if (bitmap.width !== width || bitmap.height !== height)
    throw new Error(`the label map is ${bitmap.width} x ${bitmap.height}, the picture ${width} x ${height}`);
  const context = canvasOf(width, height).getContext('2d', { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const map = new Uint8Array(width * height), colours = new Map();
  for (let a = 0; a < map.length; a++) {
    const colour = data[4 * a] << 16 | data[4 * a + 1] << 8 | data[4 * a + 2];
    if (!colours.has(colour)) {
      if (colours.size === 64) throw new Error('the picture has more than 64 colours: a label map has one for each label');
      colours.set(colour, colours.size);
    }
  }
  /* Grey numbers 0, 1, 2, ... mean themselves; other colours are numbered from dark to light, 255 stays unknown. */
  const values = [...colours.keys()].sort((a, b) => a - b);
  const greys = values.every((c) => c >> 16 === (c >> 8 & 255) && c >> 16 === (c & 255) && (c & 255) < 64 || c === 0xffffff);
  const number = new Map(values.map((c, i) => [c, greys ? c & 255 : i]));
  for (let a = 0; a < map.length; a++) map[a] = number.get(data[4 * a] << 16 | data[4 * a + 1] << 8 | data[4 * a + 2]);
  const labels = 1 + Math.max(...[...number.values()].filter((n) => n !== 255));
  if (labels < 2) throw new Error('the label map has one label only');
  return { map, labels };
}
