/* Which part of the picture is seen: a corner and a magnification. At 1 all of it fits. */

const MOST_ZOOM_PX = 48; /* screen pixels to one of the picture */

export class Viewport {
  constructor() {
    Object.assign(this, { width: 1, height: 1, zoom: 1, x: 0, y: 0, boxWidth: 1 });
  }

  /** Another picture, all of it. */
  setPicture(width, height) {
    Object.assign(this, { width, height });
    this.reset();
  }

  reset() {
    Object.assign(this, { zoom: 1, x: 0, y: 0 });
  }

  get isWhole() {
    return this.zoom === 1;
  }

  /* Never beyond the picture's edges. */
  clamp() {
    this.x = Math.min(this.width - this.width / this.zoom, Math.max(0, this.x));
    this.y = Math.min(this.height - this.height / this.zoom, Math.max(0, this.y));
  }

  /** Magnify, and leave the point (in pixels of the picture) where it is. */
  zoomAt(factor, [px, py]) {
    const most = Math.max(4, MOST_ZOOM_PX * this.width / this.boxWidth);
    const zoom = Math.min(most, Math.max(1, this.zoom * factor));
    this.x = px - (px - this.x) * this.zoom / zoom;
    this.y = py - (py - this.y) * this.zoom / zoom;
    this.zoom = zoom;
    this.clamp();
  }

  /** By pixels of the picture. */
  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.clamp();
  }

  /** Bring a point into sight. */
  show([px, py]) {
    const [w, h] = [this.width / this.zoom, this.height / this.zoom];
    this.x = Math.min(px, Math.max(this.x, px - w));
    this.y = Math.min(py, Math.max(this.y, py - h));
    this.clamp();
  }

  /** From a place on the element, in fractions of its sides, to pixels of the picture. */
  at(fx, fy) {
    return [this.x + fx * this.width / this.zoom, this.y + fy * this.height / this.zoom];
  }

  /** Let a canvas draw in pixels of the picture. */
  apply(context, canvas) {
    const scale = canvas.width / this.width * this.zoom;
    context.setTransform(scale, 0, 0, canvas.height / this.height * this.zoom, -this.x * scale, -this.y * canvas.height / this.height * this.zoom);
    return scale;
  }
}
