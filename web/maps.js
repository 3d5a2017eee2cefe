/* Maps that people bring: rough masks, label maps and strokes, as pictures. What the numbers and colours in them mean is
 * told as the command tells it. */
import { bitmapOf, canvasOf } from './picture.js';
import { NOTHING } from './strokes.js';

const UNKNOWN = -1;
const MOST_LABELS = 64;
/* Of a mask with soft edges: the share of pixels between black and white, at most, and the middle. */
const SOFT_SHARE = 0.3, MIDDLE = 128;

/* The colours of a picture as numbers 0xrrggbb, of the size that is wanted. */
async function coloursOf(blob, name, width, height) {
  const bitmap = await bitmapOf(blob).catch(() => undefined);
  if (!bitmap) throw new Error(`${name} cannot be read: it is no picture that this browser knows, or it is broken`);
  if (bitmap.width !== width || bitmap.height !== height)
    throw new Error(`${name} is ${bitmap.width} x ${bitmap.height}, the picture ${width} x ${height}; they must agree`);
  const context = canvasOf(width, height).getContext('2d', { willReadFrequently: true });
  context.fillRect(0, 0, width, height); /* black where it is transparent */
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return Int32Array.from({ length: width * height }, (_, a) => data[4 * a] << 16 | data[4 * a + 1] << 8 | data[4 * a + 2]);
}

/* How often each number occurs. */
function countsOf(numbers) {
  const counts = new Map();
  for (const one of numbers) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}

const isGrey = (colour) => colour >> 16 === (colour & 255) && (colour >> 8 & 255) === (colour & 255);
const brightness = (colour) => Math.round(((colour >> 16) + (colour >> 8 & 255) + (colour & 255)) / 3);

/* Black and white, with greys between where the mask was resized or compressed: soft edges. */
function isSoftMask(counts, pixels) {
  const dark = [...counts].filter(([colour]) => brightness(colour) < 16), light = [...counts].filter(([colour]) => brightness(colour) > 239);
  const share = (list) => list.reduce((sum, [, count]) => sum + count, 0) / pixels;
  return [...counts.keys()].every(isGrey) && dark.length > 0 && light.length > 0 && counts.has(0) && counts.has(0xffffff)
    && 1 - share(dark) - share(light) <= SOFT_SHARE;
}

/**
 * A rough mask or label map: { map, labels, note }, the map negative where it is not known. 0 and 255 are a mask of two
 * labels, also with greys between; grey numbers mean themselves, and 255 unknown; other colours are numbered.
 */
export async function readLabelMap(blob, name, width, height) {
  const colours = await coloursOf(blob, name, width, height), counts = countsOf(colours);
  const values = [...counts.keys()].sort((a, b) => a - b);
  if (values.length === 2 && counts.has(0) && counts.has(0xffffff))
    return { map: colours.map((colour) => (colour ? 1 : 0)), labels: 2, note: 'a mask, white is label 2' };
  const areNumbers = values.every((colour) => isGrey(colour) && ((colour & 255) < MOST_LABELS || colour === 0xffffff));
  if (!areNumbers && isSoftMask(counts, colours.length))
    return { map: colours.map((colour) => (brightness(colour) >= MIDDLE ? 1 : 0)), labels: 2, note: 'a mask with soft edges, white is label 2' };
  if (!areNumbers && values.length > MOST_LABELS)
    throw new Error(`${name} has ${values.length} colours; a mask has black and white, a label map one colour for each label`);
  const number = new Map(values.map((colour, i) => [colour, !areNumbers ? i : colour === 0xffffff ? UNKNOWN : colour & 255]));
  const labels = 1 + Math.max(...number.values());
  if (labels < 2) throw new Error(`${name} has one label only`);
  return { map: colours.map((colour) => number.get(colour)), labels,
    note: areNumbers ? `a label map of ${labels} labels` : `a label map of ${labels} colours, numbered from dark to light`,
    colours: areNumbers ? undefined : values };
}

/** Strokes: { map, labels, colours }: numbers with 255 where nothing was drawn, or colours on black or white. */
export async function readStrokes(blob, name, width, height) {
  const colours = await coloursOf(blob, name, width, height), counts = countsOf(colours);
  const values = [...counts.keys()].sort((a, b) => a - b);
  if (values.length > MOST_LABELS) throw new Error(`${name} has ${values.length} colours; strokes have one for each label`);
  const areNumbers = values.every((colour) => isGrey(colour) && ((colour & 255) < MOST_LABELS || colour === 0xffffff));
  const nothing = areNumbers ? (counts.has(0xffffff) ? 0xffffff : 0)
    : [0, 0xffffff].reduce((most, colour) => ((counts.get(colour) ?? 0) > (counts.get(most) ?? 0) ? colour : most));
  const drawn = values.filter((colour) => colour !== nothing);
  if (drawn.length === 0) throw new Error(`${name} has no strokes`);
  const number = new Map(drawn.map((colour, i) => [colour, areNumbers ? colour & 255 : i]));
  return { map: Uint8Array.from(colours, (colour) => number.get(colour) ?? NOTHING), labels: 1 + Math.max(...number.values()),
    colours: areNumbers ? undefined : drawn };
}

/** A map at another size, each pixel that of the place it lies on. */
export function resized(map, from, to) {
  if (from.width === to.width) return map;
  const made = new Int32Array(to.width * to.height);
  for (let y = 0, a = 0; y < to.height; y++) {
    const row = Math.floor((y + 0.5) * from.height / to.height) * from.width;
    for (let x = 0; x < to.width; x++) made[a++] = map[row + Math.floor((x + 0.5) * from.width / to.width)];
  }
  return made;
}
