/* Reading pictures and arrays in Node, as far as the tests need it. */
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { parseNpy } from '../../web/files.js';

/** { shape, data } of a .npy. */
export function readNpy(path) {
  const file = readFileSync(path);
  return parseNpy(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
}

const CHANNELS = { 0: 1, 2: 3, 3: 1, 6: 4 };

function paeth(a, b, c) {
  const [da, db, dc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return da <= db && da <= dc ? a : db <= dc ? b : c;
}

/** { data, width, height, channels } of a PNG with 8 bits and no interlacing; indices stay indices. */
export function readPng(path) {
  const file = readFileSync(path);
  const parts = [];
  let width, height, channels;
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at), type = file.toString('latin1', at + 4, at + 8);
    if (type === 'IHDR') {
      [width, height] = [file.readUInt32BE(at + 8), file.readUInt32BE(at + 12)];
      if (file[at + 16] !== 8 || file[at + 20] !== 0) throw new Error(`${path}: not 8 bits, or interlaced`);
      channels = CHANNELS[file[at + 17]];
    } else if (type === 'IDAT') parts.push(file.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const packed = inflateSync(Buffer.concat(parts));
  const row = width * channels;
  const data = new Uint8Array(row * height);
  for (let y = 0; y < height; y++) {
    const filter = packed[y * (row + 1)];
    for (let x = 0; x < row; x++) {
      const left = x >= channels ? data[y * row + x - channels] : 0;
      const up = y > 0 ? data[(y - 1) * row + x] : 0;
      const corner = x >= channels && y > 0 ? data[(y - 1) * row + x - channels] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      data[y * row + x] = packed[y * (row + 1) + 1 + x] + guess;
    }
  }
  return { data, width, height, channels };
}
