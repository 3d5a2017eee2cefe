/* The canvas: pointers and keys become strokes, the view and the strokes become a picture. */
import { ERASER } from './strokes.js';

const STROKE_OPACITY = 0.9;
const SEAM_PX = 1;
const KEY_STEP_PX = 4;

export class Painter {
  /** @param page { state, composedView, colours, began, moved, ended } */
  constructor(canvas, second, page) {
    Object.assign(this, { canvas, second, page, cursor: undefined, layer: new OffscreenCanvas(1, 1), drawn: 0 });
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    for (const name of ['pointerup', 'pointercancel', 'lostpointercapture']) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener('keydown', (event) => this.key(event, true));
    canvas.addEventListener('keyup', (event) => this.key(event, false));
    canvas.addEventListener('blur', () => this.end());
  }

  setPicture({ width, height, sizes: { full } }) {
    this.scale = full.scale;
    this.width = width;
    this.height = height;
    for (const canvas of [this.canvas, this.second]) {
      canvas.width = full.width;
      canvas.height = full.height;
      canvas.style.setProperty('--aspect', full.width / full.height);
    }
    this.base = new OffscreenCanvas(full.width, full.height);
    this.base.getContext('2d').putImageData(new ImageData(new Uint8ClampedArray(full.rgba), full.width, full.height), 0, 0);
    this.layer = new OffscreenCanvas(full.width, full.height);
    this.cursor = undefined;
    this.redraw();
  }

  /* Where an event is, in pixels of the photograph. */
  pointOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * this.width, (event.clientY - box.top) / box.height * this.height];
  }

  down(event) {
    if (!this.page.state.picture || event.button !== 0 || this.pointer !== undefined) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointer = event.pointerId;
    this.page.began(this.pointOf(event));
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) this.page.moved(this.pointOf(each));
  }

  up(event) {
    if (event.pointerId !== this.pointer) return;
    this.pointer = undefined;
    this.page.ended();
  }

  /* Arrows move the brush, space paints. */
  key(event, isDown) {
    const step = (event.shiftKey ? 5 : 1) * KEY_STEP_PX / this.scale;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (!this.page.state.picture || (event.key !== ' ' && !moves[event.key])) return;
    event.preventDefault();
    this.cursor ??= [this.width / 2, this.height / 2];
    if (event.key === ' ' && isDown && !this.isKeyPainting) {
      this.isKeyPainting = true;
      this.page.began([...this.cursor]);
    } else if (event.key === ' ' && !isDown) this.end();
    else if (isDown && moves[event.key]) {
      const [dx, dy] = moves[event.key];
      this.cursor = [Math.min(this.width, Math.max(0, this.cursor[0] + dx)), Math.min(this.height, Math.max(0, this.cursor[1] + dy))];
      if (this.isKeyPainting) this.page.moved([...this.cursor]);
    }
    this.draw();
  }

  end() {
    if (!this.isKeyPainting) return;
    this.isKeyPainting = false;
    this.page.ended();
  }

  /* Strokes were taken away or changed colour: all of them anew. */
  redraw() {
    this.drawn = 0;
    this.layer.getContext('2d').clearRect(0, 0, this.layer.width, this.layer.height);
    this.draw();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
    });
  }

  drawStrokes() {
    const { done } = this.page.state.strokes;
    const context = this.layer.getContext('2d');
    const colours = this.page.colours();
    context.lineCap = context.lineJoin = 'round';
    /* The last one may have grown since. */
    for (let i = Math.max(0, Math.min(this.drawn, done.length) - 1); i < done.length; i++) {
      const { label, size, points } = done[i];
      context.globalCompositeOperation = label === ERASER ? 'destination-out' : 'source-over';
      context.strokeStyle = label === ERASER ? 'black' : `rgb(${colours[label]})`;
      context.lineWidth = Math.max(1, size * this.scale) + (label === ERASER ? 2 * SEAM_PX : 0);
      context.beginPath();
      points.forEach(([x, y], k) => context[k ? 'lineTo' : 'moveTo'](x * this.scale, y * this.scale));
      if (points.length === 1) context.lineTo(points[0][0] * this.scale + 0.01, points[0][1] * this.scale);
      context.stroke();
      if (label === ERASER) continue;
      /* A seam, so that a stroke is seen on its own colour. */
      context.globalCompositeOperation = 'destination-over';
      context.strokeStyle = 'white';
      context.lineWidth += 2 * SEAM_PX;
      context.stroke();
    }
    this.drawn = done.length;
  }

  paint() {
    if (!this.base) return;
    const { canvas, second, page, layer } = this;
    this.drawStrokes();
    const view = page.composedView();
    const isBeside = page.state.view === 'beside';
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(view && !isBeside ? view : this.base, 0, 0, canvas.width, canvas.height);
    context.globalAlpha = page.state.unary ? 0 : STROKE_OPACITY; /* strokes do not count beside unaries */
    context.drawImage(layer, 0, 0);
    context.globalAlpha = 1;
    if (this.cursor && document.activeElement === canvas) {
      context.beginPath();
      context.arc(this.cursor[0] * this.scale, this.cursor[1] * this.scale, 6, 0, 7);
      context.lineWidth = 3;
      context.strokeStyle = 'white';
      context.stroke();
      context.lineWidth = 1;
      context.strokeStyle = 'black';
      context.stroke();
    }
    if (isBeside) {
      const other = second.getContext('2d');
      other.imageSmoothingEnabled = false;
      other.drawImage(view ?? this.base, 0, 0, second.width, second.height);
    }
  }
}
