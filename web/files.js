/* Files: arrays (.npy), label maps and masks (indexed PNG), JSON. */

const ARRAYS = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array,
  u4: Uint32Array, i4: Int32Array };

/* Half-precision floats, which not every host has as an array. */
function halves(bits) {
  return Float32Array.from(bits, (h) => {
    const sign = h & 0x8000 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
  });
}

/** { shape, data } of a .npy: little-endian numbers in C order. */
export function parseNpy(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 10 || String.fromCharCode(...bytes.slice(1, 6)) !== 'NUMPY') throw new Error('this is not a .npy file');
  const words = new DataView(buffer);
  const long = bytes[6] > 1;
  const start = (long ? 12 : 10) + (long ? words.getUint32(8, true) : words.getUint16(8, true));
  const header = new TextDecoder('latin1').decode(bytes.slice(long ? 12 : 10, start));
  const type = header.match(/'descr': *'[<|=](\w\d)'/)?.[1], shape = header.match(/'shape': *\(([^)]*)\)/);
  const Type = type === 'f2' ? Uint16Array : ARRAYS[type];
  if (!Type || !shape) throw new Error('the .npy holds neither floats nor integers of up to 32 bits');
  if (/'fortran_order': *True/.test(header)) throw new Error('the .npy is in Fortran order; save it with numpy.ascontiguousarray');
  const sizes = shape[1].split(',').filter((text) => text.trim()).map(Number);
  const count = sizes.reduce((product, size) => product * size, 1);
  const numbers = buffer.slice(start, start + count * Type.BYTES_PER_ELEMENT);
  if (numbers.byteLength < count * Type.BYTES_PER_ELEMENT) throw new Error('the .npy is cut off');
  const data = new Type(numbers);
  return { shape: sizes, data: type === 'f2' ? halves(data) : data };
}

const MOST_DIVISION = 64;

/* Could an array of this size be the answer of a network for a picture: as large, or smaller in proportion, up to the rounding of sizes? */
function fits(width, height, picture) {
  let least = 1, most = MOST_DIVISION;
  for (const [small, large] of [[width, picture.width], [height, picture.height]]) {
    if (!(small >= 1 && small <= large)) return false;
    least = Math.max(least, large / (small + 1));
    most = Math.min(most, small > 1 ? large / (small - 1) : Infinity);
  }
  return (width === picture.width && height === picture.height) || least <= most;
}

/**
 * Unary numbers for a picture, out of an array of the shape (H, W, labels) or (labels, H, W), or of a smaller one in
 * proportion: { values, labels, kind, width, height, scale }, the labels of a pixel next to each other. Integers are energies times
 * 20, as data sets keep them. `kind` is what the visitor says they are; where it is 'auto' and the numbers do not tell, that is
 * an error, as in the command.
 */
export function unaryOf({ shape, data }, picture, kind = 'auto') {
  const sizes = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape;
  const hwc = sizes.length === 3 && fits(sizes[1], sizes[0], picture), chw = sizes.length === 3 && fits(sizes[2], sizes[1], picture);
  if (!hwc && !chw)
    throw new Error(`the array has the shape (${shape.join(', ')}); this picture needs (${picture.height}, ${picture.width}, labels), (labels, ${picture.height}, ${picture.width}) or smaller ones in proportion`);
  const [height, width, labels] = hwc ? sizes : [sizes[1], sizes[2], sizes[0]], pixels = width * height;
  if (labels < 2) throw new Error('the array has one label only');
  const scale = data instanceof Float32Array || data instanceof Float64Array ? 1 : 1 / 20;
  const values = new Float32Array(pixels * labels);
  for (let a = 0; a < pixels; a++)
    for (let i = 0; i < labels; i++) values[a * labels + i] = scale * (hwc ? data[a * labels + i] : data[i * pixels + a]);
  return { values, labels, width, height, scale, kind: kind === 'auto' ? kindOf(values, labels) : kind };
}

/** Numbers for more pixels than are worked on: those of the pixels that are hit. */
export function reduced(unary, { width, height }) {
  if (unary.width <= width && unary.height <= height) return unary;
  const { labels } = unary, values = new Float32Array(width * height * labels);
  for (let y = 0, to = 0; y < height; y++)
    for (let x = 0; x < width; x++, to += labels) {
      const from = (Math.floor((y + 0.5) * unary.height / height) * unary.width + Math.floor((x + 0.5) * unary.width / width)) * labels;
      values.set(unary.values.subarray(from, from + labels), to);
    }
  return { ...unary, values, width, height };
}

/* As the library tells it (src/model/unary_kind.c): how far sums may be off, and the share of pixels that may be odd. */
const ODD_SHARE = 0.01, SUM_TOLERANCE = 0.02, EXPONENTIAL_TOLERANCE = 0.05, PROBABILITY_MAX = 1.001;

/* What the numbers are, where they tell; else an error that says between what the visitor has to choose. */
function kindOf(values, labels) {
  const nearlyAll = (holds) => {
    let odd = 0;
    for (let a = 0; a < values.length; a += labels) odd += holds(values.subarray(a, a + labels)) ? 0 : 1;
    return odd <= ODD_SHARE * values.length / labels;
  };
  const sum = (row, term) => row.reduce((total, x) => total + term(x), 0);
  const sumToOne = (row) => row.every((x) => x >= 0 && x <= PROBABILITY_MAX) && Math.abs(sum(row, (x) => x) - 1) <= SUM_TOLERANCE;
  const exponentials = (sign) => (row) => row.every((x) => sign * x <= EXPONENTIAL_TOLERANCE)
    && Math.abs(sum(row, (x) => Math.exp(sign * x)) - 1) <= EXPONENTIAL_TOLERANCE;
  const choose = (reason, other) => new Error(`It cannot be told what the numbers are: ${reason}. Say beside the button whether they are ${other} or energies, and load them again.`);
  if (nearlyAll(sumToOne)) {
    if (labels === 2 && nearlyAll((row) => row.every((x) => x === 0 || x === 1)))
      throw choose('with two labels, zeros and ones can be energies or probabilities', 'probabilities');
    return 'probabilities';
  }
  if (nearlyAll(exponentials(-1))) return 'energies';
  if (nearlyAll(exponentials(1))) return 'logits';
  if (values.some((x) => x < 0)) throw choose('negative numbers can be logits (high is likely) or energies (low is likely)', 'logits');
  if (values.every((x) => !(x > PROBABILITY_MAX)) && values.some((x) => x > 0))
    throw choose('numbers between 0 and 1 that do not sum to 1 can be scores or energies', 'probabilities');
  return 'energies';
}

/* ---- PNG ------------------------------------------------------------------------------------ */

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function chunk(type, data) {
  const bytes = new Uint8Array(12 + data.length), words = new DataView(bytes.buffer);
  words.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  let crc = -1;
  for (const byte of bytes.subarray(4, 8 + data.length)) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  words.setUint32(8 + data.length, ~crc);
  return bytes;
}

async function deflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A PNG of numbers below 256: with colours ([r, g, b] for each) an indexed one, else grey. */
export async function encodePng(map, width, height, colours) {
  const rows = new Uint8Array(height * (width + 1));
  for (let y = 0; y < height; y++) rows.set(map.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const head = new Uint8Array(13), words = new DataView(head.buffer);
  words.setUint32(0, width);
  words.setUint32(4, height);
  head.set([8, colours ? 3 : 0], 8);
  return new Blob([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head),
    ...(colours ? [chunk('PLTE', new Uint8Array(colours.flat()))] : []), chunk('IDAT', await deflate(rows)),
    chunk('IEND', new Uint8Array())], { type: 'image/png' });
}

/** Let the visitor keep a file. */
export function download(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
