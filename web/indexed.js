/* Indexed PNGs keep the numbers of labels, which a browser replaces by colours: here they are read as they are. */

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];
const INDEXED = 3;

async function inflate(parts) {
  const stream = new Blob(parts).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* The rows of bytes behind their filters. */
function unfilter(packed, rowBytes, height) {
  const rows = new Uint8Array(rowBytes * height);
  for (let y = 0, from = 0; y < height; y++) {
    const filter = packed[from++], at = y * rowBytes;
    for (let x = 0; x < rowBytes; x++, from++) {
      const left = x ? rows[at + x - 1] : 0, up = y ? rows[at + x - rowBytes] : 0, corner = x && y ? rows[at + x - rowBytes - 1] : 0;
      rows[at + x] = packed[from] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  return rows;
}

/** { numbers, colours (0xrrggbb), width, height } of an indexed PNG; undefined for every other file, and where it is interlaced or broken. */
export async function readIndexed(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer()), words = new DataView(bytes.buffer);
  if (!SIGNATURE.every((byte, i) => bytes[i] === byte) || bytes[25] !== INDEXED || bytes[28] !== 0) return undefined;
  const [width, height, bits] = [words.getUint32(16), words.getUint32(20), bytes[24]], data = [];
  let colours = [];
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = words.getUint32(at), type = String.fromCharCode(...bytes.subarray(at + 4, at + 8)), body = bytes.subarray(at + 8, at + 8 + length);
    if (type === 'PLTE') colours = Array.from({ length: length / 3 }, (_, i) => body[3 * i] << 16 | body[3 * i + 1] << 8 | body[3 * i + 2]);
    if (type === 'IDAT') data.push(body);
    at += 12 + length;
  }
  const rowBytes = Math.ceil(width * bits / 8), packed = await inflate(data).catch(() => []);
  if (packed.length < (rowBytes + 1) * height) return undefined;
  const rows = unfilter(packed, rowBytes, height);
  const numberAt = (x, y) => rows[y * rowBytes + (x * bits >> 3)] >> 8 - bits - (x * bits & 7) & (1 << bits) - 1;
  return { numbers: Int32Array.from({ length: width * height }, (_, a) => numberAt(a % width, Math.floor(a / width))), colours, width, height };
}
