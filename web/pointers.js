/* What pointers, wheel and keys on the canvas mean: one pointer paints, two move and magnify, as do the wheel and the other mouse buttons. */

const KEY_STEP_PX = 4;
const WHEEL_DOUBLES = 400; /* this much of a wheel doubles the size */
const PAINT_BUTTON = 0;

export class Pointers {
  /** @param actions { isReady, began, moved, ended, forgotten, hovered, viewChanged, keyStep } */
  constructor(canvas, viewport, actions) {
    Object.assign(this, { canvas, viewport, actions, down: new Map(), cursor: undefined });
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    for (const name of ['pointerup', 'pointercancel', 'lostpointercapture']) canvas.addEventListener(name, (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => actions.hovered(undefined));
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.key(event, true));
    canvas.addEventListener('keyup', (event) => this.key(event, false));
    canvas.addEventListener('blur', () => this.endKeys());
  }

  /* Where an event is, in pixels of the photograph. */
  pointOf({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return this.viewport.at((clientX - box.left) / box.width, (clientY - box.top) / box.height);
  }

  press(event) {
    if (!this.actions.isReady()) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, event);
    if (this.down.size > 1) {
      /* The second finger: what the first one painted was not meant. */
      if (this.painter !== undefined) this.actions.forgotten();
      this.painter = undefined;
    } else if (event.button === PAINT_BUTTON && !event.ctrlKey && !event.altKey) {
      this.painter = event.pointerId;
      this.actions.began(this.pointOf(event));
    }
  }

  move(event) {
    this.actions.hovered(event.pointerType === 'touch' && !this.down.has(event.pointerId) ? undefined : this.pointOf(event));
    if (!this.down.has(event.pointerId)) return;
    if (event.pointerId === this.painter) {
      const events = event.getCoalescedEvents?.() ?? [];
      for (const each of events.length ? events : [event]) this.actions.moved(this.pointOf(each));
    } else this.drag(event);
    this.down.set(event.pointerId, event);
  }

  /* The middle of the pointers stays on its place in the picture, and so does their distance. */
  drag(event) {
    const before = [...this.down.values()].slice(0, 2), after = before.map((one) => (one.pointerId === event.pointerId ? event : one));
    const middle = (events) => ({ clientX: events.reduce((sum, one) => sum + one.clientX, 0) / events.length, clientY: events.reduce((sum, one) => sum + one.clientY, 0) / events.length });
    const [fromX, fromY] = this.pointOf(middle(before));
    if (before.length === 2) {
      const apart = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      this.viewport.zoomAt(apart(after) / Math.max(1, apart(before)), [fromX, fromY]);
    }
    const [toX, toY] = this.pointOf(middle(after));
    this.viewport.pan(fromX - toX, fromY - toY);
    this.actions.viewChanged();
  }

  release(event) {
    if (!this.down.delete(event.pointerId)) return;
    if (event.pointerType === 'touch') this.actions.hovered(undefined);
    if (event.pointerId !== this.painter) return;
    this.painter = undefined;
    this.actions.ended();
  }

  wheel(event) {
    if (!this.actions.isReady()) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1, faster = event.ctrlKey ? 5 : 1; /* a pinch on a trackpad is a small wheel */
    this.viewport.zoomAt(2 ** (-event.deltaY * lines * faster / WHEEL_DOUBLES), this.pointOf(event));
    this.actions.viewChanged();
  }

  /* Arrows move the brush, space paints. */
  key(event, isDown) {
    const step = (event.shiftKey ? 5 : 1) * KEY_STEP_PX * this.actions.keyStep() / this.viewport.zoom;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (!this.actions.isReady() || (event.key !== ' ' && !moves[event.key])) return;
    event.preventDefault();
    const { width, height } = this.viewport;
    this.cursor ??= this.viewport.at(0.5, 0.5);
    if (event.key === ' ' && isDown && !this.isKeyPainting) {
      this.isKeyPainting = true;
      this.actions.began([...this.cursor]);
    } else if (event.key === ' ' && !isDown) this.endKeys();
    else if (isDown && moves[event.key]) {
      const [dx, dy] = moves[event.key];
      this.cursor = [Math.min(width, Math.max(0, this.cursor[0] + dx)), Math.min(height, Math.max(0, this.cursor[1] + dy))];
      this.viewport.show(this.cursor);
      if (this.isKeyPainting) this.actions.moved([...this.cursor]);
      this.actions.viewChanged();
    }
    this.actions.hovered([...this.cursor]);
  }

  endKeys() {
    if (!this.isKeyPainting) return;
    this.isKeyPainting = false;
    this.actions.ended();
  }
}
