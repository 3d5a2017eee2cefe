/* Maps that people bring: rough masks, label maps and strokes, as pictures. What the numbers and colours in them mean is
 * told as the command tells it. */
import { readIndexed } from './indexed.js';
import { bitmapOf, canvasOf } from './picture.js';
import { NOTHING } from './strokes.js';

const UNKNOWN = -1, WHITE = 0xffffff;
const MOST_LABELS = 64;

function checkSize(made, name, width, height) {
  if (!made) throw new Error(`${name} cannot be read: it is no picture that this browser knows, or it is broken`);
  if (made.width !== width || made.height !== height)
    throw new Error(`${name} is ${made.width} x ${made.height}, the picture ${width} x ${height}; they must agree`);
}

/* The colours of a picture as numbers 0xrrggbb, of the size that is wanted. */
async function coloursOf(blob, name, width, height) {
  const bitmap = await bitmapOf(blob).catch(() => undefined);
  checkSize(bitmap, name, width, height);
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

/* As the command tells a mask that was resized, blurred or saved as JPEG from a map of labels (cli/prior/traits.c). */
const NEARLY = 16, SHADES = 64, SHADE_WIDTH = 16, ROUNDED_NEARLY = 48, ROUNDED_SHARE = 0.9, TRIMAP = [96, 160];
function isSoftMask(greys, width, isRounded) {
  const counts = new Int32Array(256);
  let changes = 0;
  greys.forEach((grey, a) => {
    counts[grey]++;
    if (grey > 0 && grey < 255 && (a + 1) % width && greys[a + 1] !== grey) changes++;
  });
  const sum = (first, last) => counts.subarray(first, last + 1).reduce((total, count) => total + count, 0);
  const between = sum(1, 254), shades = counts.subarray(1, 255).filter((count) => count > 0).length;
  if (sum(0, NEARLY) === 0 || sum(255 - NEARLY, 255) === 0) return false;
  if (isRounded) return sum(0, ROUNDED_NEARLY) + sum(255 - ROUNDED_NEARLY, 255) >= ROUNDED_SHARE * greys.length;
  if (sum(MOST_LABELS + 1, 254) === 0) return false;
  return (shades === 1 && sum(...TRIMAP) === between) || 2 * changes > between || (shades >= SHADES && SHADE_WIDTH * changes > between);
}

/* A shade belongs to the label that it is nearer to, but for the one grey of a trimap, which is unknown. */
function softMask(greys) {
  const shades = [...countsOf(greys).keys()].filter((grey) => grey > 0 && grey < 255);
  const isUnknown = (grey) => shades.length === 1 && grey >= TRIMAP[0] && grey <= TRIMAP[1];
  return { map: greys.map((grey) => (isUnknown(grey) ? UNKNOWN : grey > 127 ? 1 : 0)), labels: 2, note: 'a mask with soft edges, white is the second label' };
}

/* Numbers from 0 to 255: a mask, a soft mask, or labels with 255 for unknown. */
function mapOfGreys(greys, name, width, isRounded) {
  const counts = countsOf(greys);
  if (counts.size === 2 && counts.has(0) && counts.has(255)) return { map: greys.map((grey) => (grey ? 1 : 0)), labels: 2, note: 'a mask, white is the second label' };
  if (isSoftMask(greys, width, isRounded)) return softMask(greys);
  if (isRounded) throw new Error(`${name} is a JPEG and no mask of black and white: it does not keep numbers as they were; save it as a PNG`);
  const labels = 1 + Math.max(...[...counts.keys()].filter((grey) => grey !== 255), -1);
  if (labels < 2) throw new Error(`${name} has one label only`);
  if (labels > MOST_LABELS) throw new Error(`${name} has the label ${labels - 1}; the page takes ${MOST_LABELS} labels at most`);
  return { map: greys.map((grey) => (grey === 255 ? UNKNOWN : grey)), labels, note: `a label map of ${labels} labels` };
}

const isJpeg = async (blob) => new Uint16Array(await blob.slice(0, 2).arrayBuffer())[0] === 0xd8ff;

/**
 * A rough mask or label map: { map, labels, note }, the map negative where it is not known. 0 and 255 are a mask of two
 * labels, also with greys between; grey numbers mean themselves, and 255 unknown; other colours are numbered from dark to light.
 */
export async function readLabelMap(blob, name, width, height) {
  const indexed = await readIndexed(blob);
  if (indexed) {
    checkSize(indexed, name, width, height);
    return { ...mapOfGreys(indexed.numbers, name, width, false), colours: indexed.colours };
  }
  const colours = await coloursOf(blob, name, width, height), counts = countsOf(colours);
  if ([...counts.keys()].every(isGrey)) return mapOfGreys(colours.map((colour) => colour & 255), name, width, await isJpeg(blob));
  if (await isJpeg(blob)) throw new Error(`${name} is a JPEG in colours, which does not keep them as they were; save it as a PNG`);
  if (counts.size > MOST_LABELS) throw new Error(`${name} has ${counts.size} colours; a mask has black and white, a label map one colour for each label`);
  const values = [...counts.keys()].sort((a, b) => a - b), number = new Map(values.map((colour, i) => [colour, i]));
  return { map: colours.map((colour) => number.get(colour)), labels: values.length, note: `a label map of ${values.length} colours`, colours: values };
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
  const made = new map.constructor(to.width * to.height);
  for (let y = 0, a = 0; y < to.height; y++) {
    const row = Math.floor((y + 0.5) * from.height / to.height) * from.width;
    for (let x = 0; x < to.width; x++) made[a++] = map[row + Math.floor((x + 0.5) * from.width / to.width)];
  }
  return made;
}
