/* TIFF, which browsers do not show: strips and tiles; 1 to 32 bits, integers and floats; grey, RGB and palettes; planes together or apart;
 * no compression, LZW, Deflate and PackBits, with predictors. Numbers other than 8 bits are shown from the least to the most. */

const TAGS = { 256: 'width', 257: 'height', 258: 'bits', 259: 'compression', 262: 'photometric', 273: 'offsets', 277: 'samples', 278: 'rows',
  279: 'counts', 284: 'planar', 274: 'orientation', 317: 'predictor', 320: 'palette', 322: 'tileWidth', 323: 'tileHeight', 324: 'offsets', 325: 'counts', 339: 'format' };
const SIZES = { 1: 1, 3: 2, 4: 4, 16: 8 };
const WHITE_IS_ZERO = 0, RGB = 2, PALETTE = 3;
const FLOAT = 3, SIGNED = 2;
const MOST_PIXELS = 200_000_000;
const LZW_CLEAR = 256, LZW_END = 257;

export const isTiff = ([a, b, c, d]) => (a === 0x49 && b === 0x49 && c === 42 && d === 0) || (a === 0x4d && b === 0x4d && c === 0 && d === 42);

const bad = (why) => new Error(`it is a TIFF that cannot be read: ${why}`);

function readTags(view, little) {
  const tags = { bits: [1], compression: [1], samples: [1], planar: [1], predictor: [1], format: [1], photometric: [1], orientation: [1] };
  const at = view.getUint32(4, little), count = view.getUint16(at, little);
  for (let i = 0; i < count; i++) {
    const entry = at + 2 + 12 * i, name = TAGS[view.getUint16(entry, little)], type = view.getUint16(entry + 2, little), size = SIZES[type];
    if (!name || !size) continue;
    const values = view.getUint32(entry + 4, little), from = values * size <= 4 ? entry + 8 : view.getUint32(entry + 8, little);
    const read = { 1: 'getUint8', 2: 'getUint16', 4: 'getUint32' }[size];
    if (!read || from + values * size > view.byteLength) throw bad('its directory is broken');
    tags[name] = Array.from({ length: values }, (_, k) => view[read](from + k * size, little));
  }
  return tags;
}

function unpackBits(bytes, room) {
  const out = new Uint8Array(room);
  for (let from = 0, to = 0; from < bytes.length && to < room;) {
    const n = bytes[from++] << 24 >> 24;
    if (n >= 0) {
      out.set(bytes.subarray(from, from + Math.min(n + 1, room - to)), to);
      from += n + 1;
      to += n + 1;
    } else if (n > -128) {
      out.fill(bytes[from++], to, to + 1 - n);
      to += 1 - n;
    }
  }
  return out;
}

/* Codes of 9 to 12 bits, most significant first; a string is where it was written first, and its length. */
function unpackLzw(bytes, room) {
  const out = new Uint8Array(room), starts = new Int32Array(4097), lengths = new Int32Array(4097);
  let to = 0, bits = 0, held = 0, size = 9, next = 258, last = -1, lastAt = 0;
  for (let from = 0; to < room;) {
    while (bits < size && from < bytes.length) {
      held = (held << 8 | bytes[from++]) & 0xffffff;
      bits += 8;
    }
    if (bits < size) break;
    const code = held >> bits - size & (1 << size) - 1;
    bits -= size;
    if (code === LZW_END) break;
    if (code === LZW_CLEAR) {
      [size, next, last] = [9, 258, -1];
      continue;
    }
    if (code > next || (code === next && last < 0) || next > 4096) throw bad('its LZW data is broken');
    const at = to, lastLength = last < 256 ? 1 : lengths[last];
    if (last >= 0) {
      starts[next] = lastAt;
      lengths[next++] = lastLength + 1;
    }
    const length = code < 256 ? 1 : lengths[code];
    if (code < 256) out[to++] = code;
    else for (let k = 0; k < length && to < room; k++) out[to++] = out[starts[code] + k];
    [last, lastAt] = [code, at];
    if (next >= (1 << size) - 1 && size < 12) size++;
  }
  return out;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer().catch(() => { throw bad('its compressed data is broken'); }));
}

async function unpack(bytes, compression, room) {
  if (compression === 1) return bytes;
  if (compression === 5) return unpackLzw(bytes, room);
  if (compression === 8 || compression === 32946) return inflate(bytes);
  if (compression === 32773) return unpackBits(bytes, room);
  throw bad(`its compression (${compression}) is none of LZW, Deflate and PackBits`);
}

/* A row's numbers as they were before each was replaced by its difference from the one before. */
function undoDifferences(row, samples, bits) {
  const mask = bits === 32 ? 0xffffffff : 2 ** bits - 1;
  for (let i = samples; i < row.length; i++) row[i] = (row[i] + row[i - samples]) & mask;
}

/* Floats with predictor 3: differences of bytes, the most significant bytes of all numbers first. */
function undoFloatDifferences(bytes, samples, count, little) {
  for (let i = samples; i < bytes.length; i++) bytes[i] += bytes[i - samples];
  const mixed = bytes.slice(), size = bytes.length / count;
  for (let i = 0; i < count; i++) for (let k = 0; k < size; k++) bytes[i * size + (little ? size - 1 - k : k)] = mixed[k * count + i];
}

/* The `count` numbers of a row that begins at `at`. */
function readRow(data, at, count, samples, { bits, format, predictor, little }) {
  const bytes = data.subarray(at, at + Math.ceil(count * bits / 8));
  if (predictor === 3) undoFloatDifferences(bytes, samples, count, little);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let read;
  if (bits === 8) read = (i) => bytes[i];
  else if (bits < 8) read = (i) => bytes[i * bits >> 3] >> 8 - bits - (i * bits & 7) & (1 << bits) - 1;
  else if (bits === 16) read = format === FLOAT ? undefined : (i) => view.getUint16(2 * i, little);
  else if (bits === 32) read = format === FLOAT ? (i) => view.getFloat32(4 * i, little) : (i) => view.getUint32(4 * i, little);
  else if (bits === 64 && format === FLOAT) read = (i) => view.getFloat64(8 * i, little);
  if (!read) throw bad(`its numbers have ${bits} bits`);
  const row = Float64Array.from({ length: count }, (_, i) => read(i));
  if (predictor === 2) undoDifferences(row, samples, bits);
  if (format === SIGNED) for (let i = 0; i < count; i++) if (row[i] >= 2 ** (bits - 1)) row[i] -= 2 ** bits;
  return row;
}

async function readSamples(buffer, tags, little) {
  const [width, height, samples] = [tags.width[0], tags.height[0], tags.samples[0]], isTiled = Boolean(tags.tileWidth), isApart = tags.planar[0] === 2;
  const blockWidth = isTiled ? tags.tileWidth[0] : width, blockHeight = isTiled ? tags.tileHeight[0] : Math.min(tags.rows?.[0] ?? height, height);
  const across = Math.ceil(width / blockWidth), down = Math.ceil(height / blockHeight), inBlock = isApart ? 1 : samples;
  const kind = { bits: tags.bits[0], format: tags.format[0], predictor: tags.predictor[0], little };
  const rowBytes = Math.ceil(blockWidth * inBlock * kind.bits / 8), file = new Uint8Array(buffer);
  const values = new Float32Array(width * height * samples);
  for (let block = 0; block < across * down * (isApart ? samples : 1); block++) {
    const plane = Math.floor(block / (across * down)), x0 = block % across * blockWidth, y0 = Math.floor(block / across) % down * blockHeight;
    const from = tags.offsets?.[block], length = tags.counts?.[block];
    if (!(from + length <= file.length)) throw bad('it is cut off');
    const rows = Math.min(blockHeight, height - y0), data = await unpack(file.slice(from, from + length), tags.compression[0], rowBytes * blockHeight);
    if (data.length < rowBytes * rows) throw bad('a strip or tile of it is too short');
    for (let y = 0; y < rows; y++) {
      const row = readRow(data, y * rowBytes, blockWidth * inBlock, inBlock, kind);
      for (let x = 0; x < Math.min(blockWidth, width - x0); x++)
        for (let c = 0; c < inBlock; c++) values[((y0 + y) * width + x0 + x) * samples + plane + c] = row[x * inBlock + c];
    }
  }
  return values;
}

/* What is black and what is white, as in the command (cli/io/sample_range.c): all of 8 bits, or of 16 where they are used, or floats to
 * 1 or 255; else from the least to the most, without a thousandth at either end. */
const LEFT_OUT = 0.001;
function rangeOf(values, samples, used, bits, format) {
  if (bits <= 8 && format !== SIGNED) return [0, 2 ** bits - 1];
  const numbers = values.filter((value, a) => a % samples < used && Number.isFinite(value)).sort();
  if (numbers.length === 0) throw bad('it has no data: every number is missing');
  const at = (part) => numbers[Math.min(numbers.length - 1, Math.floor(part * numbers.length))], least = numbers[0], most = numbers.at(-1);
  for (const usual of format === 1 && bits === 16 ? [65535] : [1, 255]) if (least >= 0 && most <= usual * (1 + 1e-6) && most > usual / 2) return [0, usual];
  const [black, white] = [at(LEFT_OUT), numbers[Math.max(0, Math.ceil((1 - LEFT_OUT) * numbers.length) - 1)]];
  return white > black ? [black, white] : [black - 1, black + 1];
}

/** { rgba, width, height, note } of the first picture in a file; an error says why it is none. */
export async function decodeTiff(buffer) {
  const view = new DataView(buffer), little = view.getUint8(0) === 0x49;
  let tags;
  try {
    tags = readTags(view, little);
  } catch (error) {
    throw error instanceof RangeError ? bad('it is cut off') : error;
  }
  const [width, height] = [tags.width?.[0], tags.height?.[0]], samples = tags.samples[0], photometric = tags.photometric[0];
  if (!(width > 0 && height > 0 && width * height <= MOST_PIXELS)) throw bad('it has no size, or one that is too large');
  if (photometric > PALETTE) throw bad('its colours are none of grey, RGB and a palette');
  if (tags.bits.some((bits) => bits !== tags.bits[0])) throw bad('its channels have different numbers of bits');
  const values = await readSamples(buffer, tags, little);
  const used = photometric === RGB && samples >= 3 ? 3 : 1, isPalette = photometric === PALETTE;
  const [black, white] = isPalette ? [0, 1] : rangeOf(values, samples, used, tags.bits[0], tags.format[0]);
  const rgba = new Uint8ClampedArray(4 * width * height), entries = (tags.palette?.length ?? 0) / 3;
  const depth = isPalette && Math.max(...tags.palette ?? [0]) > 255 ? 257 : 1;
  for (let a = 0; a < width * height; a++) {
    for (let c = 0; c < 3; c++) {
      const value = values[a * samples + (used === 3 ? c : 0)];
      const shade = isPalette ? tags.palette[c * entries + value] / depth : 255 * (value - black) / (white - black);
      rgba[4 * a + c] = photometric === WHITE_IS_ZERO ? 255 - shade : shade;
    }
    rgba[4 * a + 3] = 255;
  }
  const isScaled = !isPalette && tags.bits[0] > 8 && ![1, 255, 65535].includes(white);
  return { rgba, width, height, note: isScaled ? `Its numbers are shown from ${Number(black.toPrecision(4))} (black) to ${Number(white.toPrecision(4))} (white).` : undefined };
}
