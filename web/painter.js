/* The canvas: the photograph, what is shown over it, the strokes and the outline of the brush, as far as the viewport shows them. */
import { ERASER, NOTHING } from './strokes.js';
import { canvasOf } from './picture.js';
import { strokesPicture } from './views.js';

const STROKE_OPACITY = 0.9;
const SEAM_PX = 1;
const CRISP_FROM = 3; /* screen pixels to one of the picture: then pixels are seen as such */

export class Painter {
  /** @param page { state, viewport, layer, colours, brush } : `layer` is what lies over the photograph */
  constructor(canvas, second, page) {
    Object.assign(this, { canvas, second, page, strokes: canvasOf(1, 1), drawn: 0, maps: new WeakMap() });
    new ResizeObserver(() => this.fit()).observe(canvas);
  }

  setPicture({ width, height, bitmap, sizes: { full } }) {
    for (const canvas of [this.canvas, this.second]) canvas.style.setProperty('--aspect', width / height);
    if (bitmap) this.base = bitmap;
    else {
      this.base = canvasOf(full.width, full.height);
      this.base.getContext('2d').putImageData(new ImageData(new Uint8ClampedArray(full.rgba), full.width, full.height), 0, 0);
    }
    this.page.viewport.setPicture(width, height);
    this.fit();
  }

  /* As many pixels as the screen has for it. */
  fit() {
    if (!this.base) return;
    const { viewport, state } = this.page, box = this.canvas.clientWidth;
    viewport.boxWidth = box || 1;
    const width = Math.max(1, Math.round(box * Math.min(2, devicePixelRatio))), height = Math.max(1, Math.round(width * state.picture.height / state.picture.width));
    for (const canvas of [this.canvas, this.second])
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    this.strokes = canvasOf(width, height);
    this.redraw();
  }

  /* The view moved, strokes were removed or changed colour: draw all of them again. */
  redraw() {
    this.drawn = 0;
    this.draw();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
    });
  }

  drawStroke(context, { label, size, points }, colours, scale) {
    context.globalCompositeOperation = label === ERASER ? 'destination-out' : 'source-over';
    context.strokeStyle = label === ERASER ? 'black' : `rgb(${colours[label]})`;
    context.lineWidth = Math.max(1 / scale, size) + (label === ERASER ? 2 * SEAM_PX / scale : 0);
    context.beginPath();
    points.forEach(([x, y], k) => context[k ? 'lineTo' : 'moveTo'](x, y));
    if (points.length === 1) context.lineTo(points[0][0] + 0.01 / scale, points[0][1]);
    context.stroke();
    if (label === ERASER) return;
    /* A seam, so that a stroke is seen on its own colour. */
    context.globalCompositeOperation = 'destination-over';
    context.strokeStyle = 'white';
    context.lineWidth += 2 * SEAM_PX / scale;
    context.stroke();
  }

  /* Strokes of a file are a picture, which is kept. */
  drawMap(context, stroke, colours) {
    const { map, width, height } = stroke, key = String(colours);
    let kept = this.maps.get(stroke);
    if (kept?.key !== key) {
      kept = { key, canvas: canvasOf(width, height) };
      kept.canvas.getContext('2d').putImageData(strokesPicture(map, width, height, colours, NOTHING), 0, 0);
      this.maps.set(stroke, kept);
    }
    context.globalCompositeOperation = 'source-over';
    context.drawImage(kept.canvas, 0, 0);
  }

  drawStrokes() {
    const { done } = this.page.state.strokes, colours = this.page.colours(), context = this.strokes.getContext('2d');
    if (this.drawn === 0) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.strokes.width, this.strokes.height);
    }
    const scale = this.page.viewport.apply(context, this.strokes);
    context.lineCap = context.lineJoin = 'round';
    /* The last one may have grown since. */
    for (let i = Math.max(0, Math.min(this.drawn, done.length) - 1); i < done.length; i++)
      if (done[i].map) this.drawMap(context, done[i], colours);
      else this.drawStroke(context, done[i], colours, scale);
    this.drawn = done.length;
  }

  /* Black in white, so that it is seen on everything. */
  drawBrush(context, scale) {
    const { at, radius } = this.page.brush();
    if (!at) return;
    for (const [colour, width] of [['white', 3], ['black', 1]]) {
      context.beginPath();
      context.arc(at[0], at[1], Math.max(radius, 2 / scale), 0, 7);
      context.lineWidth = width * Math.min(2, devicePixelRatio) / scale;
      context.strokeStyle = colour;
      context.stroke();
    }
  }

  paintOn(canvas, layer) {
    const { viewport, state: { picture } } = this.page, context = canvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = 'white'; /* behind what is transparent */
    context.fillRect(0, 0, canvas.width, canvas.height);
    const scale = viewport.apply(context, canvas);
    context.imageSmoothingEnabled = scale < CRISP_FROM;
    context.imageSmoothingQuality = 'high';
    context.drawImage(this.base, 0, 0, picture.width, picture.height);
    /* What was worked on at a reduced size has no pixels of the picture to show. */
    context.imageSmoothingEnabled = Boolean(layer) && layer.width < picture.width;
    if (layer) context.drawImage(layer, 0, 0, picture.width, picture.height);
    return { context, scale };
  }

  paint() {
    if (!this.base) return;
    const { canvas, second, page } = this;
    this.drawStrokes();
    const isBeside = page.state.view === 'beside', layer = page.layer();
    const { context, scale } = this.paintOn(canvas, isBeside ? undefined : layer);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = page.state.unary ? 0 : STROKE_OPACITY; /* strokes do not count beside unaries */
    context.drawImage(this.strokes, 0, 0);
    context.globalAlpha = 1;
    page.viewport.apply(context, canvas);
    this.drawBrush(context, scale);
    if (isBeside) this.paintOn(second, layer);
  }
}
