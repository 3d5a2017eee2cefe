/* The page's side of the worker. The newest job counts: it cancels those before it. A worker that crashes or hangs is
 * replaced; the picture is sent again, and the page's strokes are not its business. */

/* A worker that does not see a newer job by then is replaced. */
const PATIENCE_MS = 700;
const NEWEST = 0, FINISHED = 1;
const KEPT = 'Your strokes are kept; the next one starts again.';

export class Client {
  /** @param handlers { ready, progress, stage, mask, result, failed }: called with the worker's messages */
  constructor(handlers) {
    this.handlers = handlers;
    this.newest = 0;
    /* Where memory can be shared the worker sees at once that it is to stop; elsewhere between two steps. */
    this.flag = globalThis.crossOriginIsolated ? new Int32Array(new SharedArrayBuffer(8)) : undefined;
    this.start();
  }

  start() {
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.receive({ type: 'crashed', message: event.message || 'the worker stopped' });
    };
    this.worker.postMessage({ type: 'hello', flag: this.flag, variant: new URLSearchParams(location.search).get('variant') ?? undefined });
    if (this.picture) this.worker.postMessage(this.picture);
    this.running = undefined;
  }

  /* End this worker and begin with another. */
  replace() {
    this.worker.terminate();
    this.start();
  }

  /* Go on with a new worker, and say why. */
  broken(message) {
    this.replace();
    this.handlers.failed({ message });
  }

  receive(message) {
    if (message.type === 'crashed') return this.broken(`The computation broke down (${message.message}). ${KEPT}`);
    if (message.type === 'full') return this.broken(`Out of memory (${message.message}). ${KEPT} Fewer labels or a smaller picture need less.`);
    if (message.type === 'unusable') return this.handlers.failed(message);
    if (message.type === 'ready') return this.handlers.ready(message);
    if (['progress', 'stage', 'mask'].includes(message.type)) return message.id === this.newest && this.handlers[message.type](message);
    if (message.id === this.running) {
      this.running = undefined;
      clearTimeout(this.impatience);
      if (this.waiting) this.send(this.waiting);
    }
    if (message.id !== this.newest || message.type === 'cancelled') return undefined;
    return message.type === 'result' ? this.handlers.result(message) : this.handlers.failed(message);
  }

  setPicture(picture) {
    this.cancel();
    this.waiting = undefined;
    this.picture = { type: 'picture', sizes: picture.sizes };
    this.worker.postMessage(this.picture);
  }

  /** Do this job, and no older one. Returns its number. */
  solve(job) {
    const next = { ...job, type: 'solve', id: ++this.newest };
    if (this.flag) Atomics.store(this.flag, NEWEST, this.newest);
    if (this.running === undefined) this.send(next);
    else {
      this.waiting = next;
      this.worker.postMessage({ type: 'cancel' });
      clearTimeout(this.impatience);
      this.impatience = setTimeout(() => this.replaceBusy(), PATIENCE_MS);
    }
    return next.id;
  }

  replaceBusy() {
    const { waiting } = this;
    if (!waiting) return;
    this.replace();
    this.send(waiting);
  }

  send(job) {
    this.waiting = undefined;
    this.running = job.id;
    this.worker.postMessage(job);
  }

  get isBusy() {
    return this.running !== undefined;
  }

  /** Stop what runs; nothing follows. */
  cancel() {
    this.newest++;
    if (this.flag) Atomics.store(this.flag, NEWEST, this.newest);
    if (this.running !== undefined) this.worker.postMessage({ type: 'cancel' });
  }

  /** End a proof early and take what it has; `isLastStage`: while labels are excluded, which looks for no messages. */
  finish(isLastStage) {
    if (this.running === undefined) return;
    this.worker.postMessage({ type: 'finish' });
    if (isLastStage && this.flag) Atomics.store(this.flag, FINISHED, this.newest);
  }
}
