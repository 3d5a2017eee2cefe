/* The mask at the size of the photograph. What was worked on at a reduced size is enlarged; wherever two labels meet, the
 * photograph itself is looked at again, tile by tile, in a worker of its own whose memory is given back afterwards. */

/* A tile in cells (pixels of the reduced size), and how much of its surroundings it sees. */
const TILE_CELLS = 48, HALO_CELLS = 6;

/** Labels enlarged, each pixel that of the cell it lies in. */
export function enlarge({ labels, width, height }, picture) {
  const map = new Uint8Array(picture.width * picture.height);
  const columns = Int32Array.from({ length: picture.width }, (_, x) => Math.min(width - 1, Math.floor((x + 0.5) * width / picture.width)));
  for (let y = 0, a = 0; y < picture.height; y++) {
    const row = Math.min(height - 1, Math.floor((y + 0.5) * height / picture.height)) * width;
    for (let x = 0; x < picture.width; x++, a++) map[a] = labels[row + columns[x]];
  }
  return map;
}

/* Do cells of more than one label lie in a box? */
function hasBorder({ labels, width }, { left, top, right, bottom }) {
  const first = labels[top * width + left];
  for (let y = top; y < bottom; y++)
    for (let x = left; x < right; x++) if (labels[y * width + x] !== first) return true;
  return false;
}

function grown({ left, top, right, bottom }, by, width, height) {
  return { left: Math.max(0, left - by), top: Math.max(0, top - by), right: Math.min(width, right + by), bottom: Math.min(height, bottom + by) };
}

/** The tiles that have a border: { inner, outer }, in cells. */
export function tilesOf(result) {
  const { width, height } = result, tiles = [];
  for (let top = 0; top < height; top += TILE_CELLS)
    for (let left = 0; left < width; left += TILE_CELLS) {
      const inner = grown({ left, top, right: left + TILE_CELLS, bottom: top + TILE_CELLS }, 0, width, height);
      if (hasBorder(result, grown(inner, 1, width, height))) tiles.push({ inner, outer: grown(inner, HALO_CELLS, width, height) });
    }
  return tiles;
}

/* The part of an array over cells, `count` numbers to a cell, that lies in a box. */
function crop(values, count, width, { left, top, right, bottom }) {
  const part = new Float32Array((right - left) * (bottom - top) * count);
  for (let y = top, to = 0; y < bottom; y++, to += (right - left) * count)
    part.set(values.subarray((y * width + left) * count, (y * width + right) * count), to);
  return part;
}

/** Where a box of cells lies in the photograph. */
function inPixels({ left, top, right, bottom }, result, picture) {
  const x = (cell) => Math.round(cell * picture.width / result.width), y = (cell) => Math.round(cell * picture.height / result.height);
  return { left: x(left), top: y(top), right: x(right), bottom: y(bottom) };
}

class TileWorker {
  constructor(variant) {
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    this.worker.postMessage({ type: 'hello', variant });
  }

  refine(job) {
    return new Promise((done, failed) => {
      this.worker.onmessage = ({ data }) => {
        if (data.type === 'tile') done(data.labels);
        else if (data.type !== 'ready') failed(new Error(`The edges could not be refined: ${data.message}`));
      };
      this.worker.onerror = (event) => failed(new Error(`The edges could not be refined: ${event.message}`));
      this.worker.postMessage({ ...job, type: 'tile', id: 1 }, [job.rgba.buffer, job.probabilities.buffer]);
    });
  }
}

/**
 * @param result { labels, probabilities, width, height } at the size that was worked on
 * @param picture { width, height, pixelsOf({ left, top, right, bottom }) }
 * @param onProgress called with the tiles that are done and their number
 */
export async function maskAtFullSize(result, picture, labelCount, { onProgress = () => {}, variant } = {}) {
  const map = enlarge(result, picture);
  if (!result.probabilities || result.width === picture.width) return map;
  const tiles = tilesOf(result);
  const worker = new TileWorker(variant);
  try {
    for (const [i, { inner, outer }] of tiles.entries()) {
      onProgress(i, tiles.length);
      const box = inPixels(outer, result, picture), kept = inPixels(inner, result, picture), width = box.right - box.left;
      const labels = await worker.refine({ rgba: picture.pixelsOf(box), width, height: box.bottom - box.top, labels: labelCount,
        probabilities: crop(result.probabilities, labelCount, result.width, outer), cells: [outer.right - outer.left, outer.bottom - outer.top],
        cellPx: picture.width / result.width });
      for (let y = kept.top; y < kept.bottom; y++)
        map.set(labels.subarray((y - box.top) * width + kept.left - box.left, (y - box.top) * width + kept.right - box.left), y * picture.width + kept.left);
    }
  } finally {
    worker.worker.terminate();
  }
  return map;
}
