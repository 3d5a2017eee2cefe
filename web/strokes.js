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

/** Paint one stroke into a map; `scale` is pixels of the map for one of the picture. */
export function paintStroke(map, width, height, { label, size, points }, scale) {
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

/** The strokes, with undo and redo. */
export class Strokes {
  done = [];
  undone = [];

  begin(label, size, point) {
    this.done.push({ label, size, points: [point] });
    this.undone = [];
  }

  extend(point) {
    this.done.at(-1).points.push(point);
  }

  undo() {
    const stroke = this.done.pop();
    if (stroke) this.undone.push(stroke);
    return Boolean(stroke);
  }

  redo() {
    const stroke = this.undone.pop();
    if (stroke) this.done.push(stroke);
    return Boolean(stroke);
  }

  clear() {
    this.done = [];
    this.undone = [];
  }

  /* A label is gone: so are its strokes, and those of later labels move down. */
  removeLabel(label) {
    for (const list of ['done', 'undone'])
      this[list] = this[list].filter((stroke) => stroke.label !== label)
        .map((stroke) => (stroke.label > label ? { ...stroke, label: stroke.label - 1 } : stroke));
  }

  get labels() {
    return new Set(this.done.map(({ label }) => label).filter((label) => label !== ERASER));
  }
}
