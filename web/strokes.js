/* Strokes on a picture: what was painted, in pixels of the whole picture, so that they fit every size that is
 * worked on. A stroke is a line of discs; later ones lie over earlier ones. */

/** The number of a pixel without a stroke, as in the maps that the command reads. */
export const NOTHING = 255;
export const ERASER = -1;

/* Set the pixels of a map within `radius` of the segment from (ax, ay) to (bx, by); the centre of pixel x is at
 * x + 0.5. At least the pixel under the beginning is set. */
function paintSegment(map, width, height, ax, ay, bx, by, radius, value) {
  const fromX = Math.max(0, Math.floor(Math.min(ax, bx) - radius)), toX = Math.min(width - 1, Math.ceil(Math.max(ax, bx) + radius));
  const fromY = Math.max(0, Math.floor(Math.min(ay, by) - radius)), toY = Math.min(height - 1, Math.ceil(Math.max(ay, by) + radius));
  const dx = bx - ax, dy = by - ay, squared = dx * dx + dy * dy;
  for (let y = fromY; y <= toY; y++)
    for (let x = fromX; x <= toX; x++) {
      const px = x + 0.5 - ax, py = y + 0.5 - ay;
      const along = squared > 0 ? Math.min(1, Math.max(0, (px * dx + py * dy) / squared)) : 0;
      if ((px - along * dx) ** 2 + (py - along * dy) ** 2 <= radius * radius) map[y * width + x] = value;
    }
  const x = Math.floor(ax), y = Math.floor(ay);
  if (x >= 0 && x < width && y >= 0 && y < height) map[y * width + x] = value;
}

/* Strokes of a file, on a map of this size or a smaller one; thin ones stay. */
function paintMap(map, width, height, from) {
  for (let y = 0, a = 0; y < from.height; y++) {
    const row = Math.floor((y + 0.5) * height / from.height) * width;
    for (let x = 0; x < from.width; x++, a++)
      if (from.map[a] !== NOTHING) map[row + Math.floor((x + 0.5) * width / from.width)] = from.map[a];
  }
}

/** The labels on a map of strokes. */
export const labelsOn = (map) => [...new Set(map)].filter((label) => label !== NOTHING);

/** Paint one stroke into a map; `scale` is pixels of the map for one of the picture. */
export function paintStroke(map, width, height, stroke, scale) {
  if (stroke.map) {
    paintMap(map, width, height, stroke);
    return;
  }
  const { label, size, points } = stroke;
  const value = label === ERASER ? NOTHING : label;
  const radius = size * scale / 2;
  let [ax, ay] = points[0];
  for (const [bx, by] of points) {
    paintSegment(map, width, height, ax * scale, ay * scale, bx * scale, by * scale, radius, value);
    [ax, ay] = [bx, by];
  }
}

/** The map of all strokes. */
export function rasterize(strokes, width, height, scale) {
  const map = new Uint8Array(width * height).fill(NOTHING);
  for (const stroke of strokes) paintStroke(map, width, height, stroke, scale);
  return map;
}

/** The strokes. Whatever changes them can be taken back: each change keeps what was there before. */
export class Strokes {
  done = [];
  past = [];
  future = [];

  /* Something new instead of what is there. */
  change(strokes) {
    this.past.push(this.done);
    this.future = [];
    this.done = strokes;
  }

  begin(label, size, point) {
    this.change([...this.done, { label, size, points: [point] }]);
  }

  extend(point) {
    this.done.at(-1).points.push(point);
  }

  /* The stroke that was begun last was none: two fingers move the picture. */
  forget() {
    this.done = this.past.pop();
  }

  undo() {
    if (this.past.length === 0) return false;
    this.future.push(this.done);
    this.done = this.past.pop();
    return true;
  }

  redo() {
    if (this.future.length === 0) return false;
    this.past.push(this.done);
    this.done = this.future.pop();
    return true;
  }

  clear() {
    this.change([]);
  }

  /** Strokes out of a file, a map of labels of the picture's size, instead of all others. */
  load(map, width, height) {
    this.change([{ map, width, height, labels: labelsOn(map) }]);
  }

  /** Another picture: nothing of this can be taken back. */
  reset(done = []) {
    Object.assign(this, { done, past: [], future: [] });
  }

  /* A label is gone: so are its strokes, and those of later labels move down. */
  removeLabel(label) {
    const kept = (strokes) => strokes.filter((stroke) => stroke.map || stroke.label !== label).map((stroke) => withoutLabel(stroke, label));
    this.done = kept(this.done);
    this.past = this.past.map(kept);
    this.future = this.future.map(kept);
  }

  get labels() {
    const labels = new Set(this.done.flatMap((stroke) => stroke.labels ?? [stroke.label]));
    labels.delete(ERASER);
    return labels;
  }
}

function withoutLabel(stroke, label) {
  if (stroke.map) {
    const map = stroke.map.map((one) => (one === NOTHING || one < label ? one : one === label ? NOTHING : one - 1));
    return { ...stroke, map, labels: labelsOn(map) };
  }
  return stroke.label > label ? { ...stroke, label: stroke.label - 1 } : stroke;
}
