/* One image, its model, and runs of a method on it. */

const METHODS = { mf: 0, qp: 1, lp: 2 };
const SUPERPIXELS = { meanshift: 0, slic: 1 };
const LAYOUTS = { hwc: 0, chw: 1 };
const KINDS = { energies: 1, probabilities: 2, logits: 3 };
const NORMALIZATIONS = { none: 0, symmetric: 1 };
const STOPS = ['running', 'gap', 'stationary', 'iterations', 'time', 'cancelled'];
const DEFAULT = -1;

/* Milliseconds of work between two looks at the host's messages. */
const WORK_MS = 12;
const LEAST_PROBABILITY = 1e-6;
/* What the library can number, and what fits into 32 bits. */
const MOST_PIXELS = 2 ** 31 - 1;
const MOST_LABELS = 65535;
const MOST_ITERATIONS = 2 ** 32 - 1;

/* Let the host handle what has arrived: a message, a timer. */
function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

function named(table, name, what) {
  if (!Object.hasOwn(table, name)) throw new Error(`${what} '${name}' is none of ${Object.keys(table).join(', ')}`);
  return table[name];
}

/* The module counts in 32 bits and drops fractions: what is not a number of this range would become another. */
function whole(value, what, least, most) {
  if (typeof value !== 'number') throw new TypeError(`${what} is not a number`);
  if (!Number.isInteger(value) || value < least || value > most)
    throw new RangeError(`${what} is ${value}, not a whole number from ${least} to ${most}`);
  return value;
}

/* A number that may be left out. */
function limit(value, what) {
  if (value === undefined || value === DEFAULT) return DEFAULT;
  if (typeof value !== 'number') throw new TypeError(`${what} is not a number`);
  if (!(value >= 0)) throw new RangeError(`${what} is ${value}, not a number from 0`);
  return value;
}

/* Energies out of what users have; a copy, labels of a pixel next to each other. */
export function energiesOf(values, pixels, labels, { kind = 'energies', layout = 'hwc' } = {}) {
  if (values.length !== pixels * labels)
    throw new Error(`unary has ${values.length} numbers, not ${pixels} pixels x ${labels} labels`);
  named(KINDS, kind, 'unary kind');
  named(LAYOUTS, layout, 'layout');
  const energies = new Float32Array(values.length);
  for (let a = 0; a < pixels; a++) {
    for (let i = 0; i < labels; i++) {
      const value = layout === 'chw' ? values[i * pixels + a] : values[a * labels + i];
      energies[a * labels + i] = kind === 'probabilities' ? -Math.log(Math.max(value, LEAST_PROBABILITY)) : value;
    }
    if (kind === 'logits') {
      const row = energies.subarray(a * labels, (a + 1) * labels);
      const top = row.reduce((most, x) => Math.max(most, x), -Infinity);
      const sum = Math.log(row.reduce((total, x) => total + Math.exp(x - top), 0));
      for (let i = 0; i < labels; i++) row[i] = top + sum - row[i];
    }
  }
  return energies;
}

export class Session {
  /** @param image { data, width, height }: bytes, 1, 3 or 4 to a pixel; the fourth is not read */
  constructor(library, image, labels) {
    const { data, width, height } = image;
    whole(width, 'width', 1, MOST_PIXELS);
    whole(height, 'height', 1, MOST_PIXELS);
    whole(labels, 'labels', 1, MOST_LABELS);
    const pixels = whole(width * height, 'width x height', 1, MOST_PIXELS);
    const given = data.length / pixels;
    if (![1, 3, 4].includes(given))
      throw new Error(`image has ${data.length} bytes; ${width} x ${height} pixels have 1, 3 or 4 each`);
    Object.assign(this, { library, width, height, pixels, labels, channels: given === 1 ? 1 : 3, kernels: 0 });
    this.handle = library.exports.dcrf_web_new(width, height, this.channels, labels);
    if (!this.handle) library.check(-1);
    const bytes = library.view(Uint8Array, library.exports.dcrf_web_image(this.handle), pixels * this.channels);
    if (given === 4)
      for (let a = 0, to = 0; a < pixels; a++)
        for (let c = 0; c < 3; c++) bytes[to++] = data[4 * a + c];
    else bytes.set(data);
  }

  free() {
    if (!this.handle) return;
    this.rest();
    this.library.exports.dcrf_web_free(this.handle);
    this.handle = 0;
  }

  /* The module's functions, of which each wants a living handle. */
  get exports() {
    if (!this.handle) throw new Error('the session was freed; make another');
    return this.library.exports;
  }

  /* Nothing may change under a run, which waits for the host between its steps. */
  rest() {
    if (this.isRunning) throw new Error('a run is under way in this session; wait for it, or make another session');
  }

  call(name, ...args) {
    return this.library.check(this.exports[`dcrf_web_${name}`](this.handle, ...args));
  }

  change(name, ...args) {
    this.rest();
    return this.call(name, ...args);
  }

  array(Type, name, count) {
    return this.library.view(Type, this.exports[`dcrf_web_${name}`](this.handle), count);
  }

  /** Numbers of the picture's size, or with `width` and `height` in the options of a smaller one, which are enlarged. */
  setUnary(values, options = {}) {
    this.rest();
    const { width = this.width, height = this.height } = options;
    if (width !== this.width || height !== this.height) {
      this.enlargeUnary(values, width, height, options);
      return;
    }
    const energies = energiesOf(values, this.pixels, this.labels, options);
    this.array(Float32Array, 'unary', energies.length).set(energies);
    this.change('set_unary');
  }

  enlargeUnary(values, width, height, { kind = 'energies', layout = 'hwc' }) {
    const pixels = whole(width, 'width', 1, this.width) * whole(height, 'height', 1, this.height);
    const kindNumber = named(KINDS, kind, 'unary kind');
    const { labels } = this;
    if (values.length !== pixels * labels)
      throw new Error(`unary has ${values.length} numbers, not ${width} x ${height} pixels x ${labels} labels`);
    const at = this.exports.dcrf_web_small(this.handle, pixels);
    if (!at) this.library.check(-1);
    const small = this.library.view(Float32Array, at, values.length);
    if (named(LAYOUTS, layout, 'layout') === LAYOUTS.hwc) small.set(values);
    else for (let i = 0, from = 0; i < labels; i++) for (let a = 0; a < pixels; a++) small[a * labels + i] = values[from++];
    this.change('enlarge_unary', width, height, kindNumber);
  }

  /** { sigma, weight } is spatial, { sigma, colourSigma, weight } bilateral. */
  addKernel({ sigma, colourSigma = 0, weight, normalize = 'symmetric' }) {
    this.change('add_kernel', sigma, colourSigma, weight, named(NORMALIZATIONS, normalize, 'normalize'));
    return this.kernels++;
  }

  setWeight(kernel, weight) {
    whole(kernel, 'kernel', 0, this.kernels - 1);
    this.change('set_weight', kernel, weight);
  }

  /** Use these kernels, their weights times `strength`; what was planned for them before is kept. */
  useKernels(kernels, strength = 1) {
    const shape = JSON.stringify(kernels.map(({ weight, ...rest }) => rest));
    if (this.kernels === 0) {
      for (const kernel of kernels) this.addKernel(kernel);
      this.shape = shape;
    } else if (this.shape !== shape) throw new Error('a session keeps its kernels; make another for others');
    kernels.forEach(({ weight }, i) => this.setWeight(i, weight * strength));
  }

  /** The default kernels, with the strength that suits the unaries, times `factor`. */
  useDefaultKernels(factor = 1) {
    this.change('default_kernels', factor);
    this.kernels = 2;
  }

  /** What it costs a pixel to disagree with everything: twice the sum of the weights, in nats. */
  get strength() {
    return this.exports.dcrf_web_strength(this.handle);
  }

  set strength(nats) {
    this.change('set_strength', nats);
  }

  /** The kernels that suit strokes. */
  get scribbleKernels() {
    const [sigma, weight, bilateralSigma, colourSigma, bilateralWeight] =
      this.library.view(Float64Array, this.exports.dcrf_web_scribble_kernels(), 5);
    return [{ sigma, weight }, { sigma: bilateralSigma, colourSigma, weight: bilateralWeight }];
  }

  /**
   * Strokes: a label for each pixel that was drawn on, 255 elsewhere. Makes the mask and the unary energies of the
   * model. False where the host wanted it to stop.
   */
  scribble(strokes) {
    this.rest();
    if (!ArrayBuffer.isView(strokes) || strokes.BYTES_PER_ELEMENT !== 1) throw new TypeError('strokes is not an array of bytes');
    if (strokes.length !== this.pixels) throw new Error(`strokes has ${strokes.length} numbers, not one for each of ${this.pixels} pixels`);
    this.array(Uint8Array, 'strokes', this.pixels).set(strokes);
    return this.call('scribble') === 0;
  }

  /**
   * A rough mask, a label for each pixel, negative where it is not known, becomes the unary energies and the kernels of the
   * model, their weights times `factor`. `sureness`: from 0 (the mask says nothing here) to 1 (its label binds here).
   */
  setMask(map, factor = 1, sureness = undefined) {
    this.rest();
    if (map.length !== this.pixels) throw new Error(`the mask has ${map.length} numbers, not one for each of ${this.pixels} pixels`);
    const at = this.exports.dcrf_web_map(this.handle);
    if (!at) this.library.check(-1);
    this.library.view(Int32Array, at, this.pixels).set(map);
    if (sureness) {
      if (sureness.length !== this.pixels) throw new Error(`sureness has ${sureness.length} numbers, not one for each of ${this.pixels} pixels`);
      const sure = this.exports.dcrf_web_sureness(this.handle);
      if (!sure) this.library.check(-1);
      this.library.view(Float32Array, sure, this.pixels).set(sureness);
    }
    this.call('set_mask', factor);
    this.kernels = 2;
    this.hasMask = true;
  }

  /** How far the last labels have moved from the mask; the kernels without the factor. */
  maskMoves() {
    if (!this.hasMask) throw new Error('there is no mask; setMask gives one');
    const at = this.exports.dcrf_web_mask_moves(this.handle);
    if (!at) this.library.check(-1);
    const [changed, border, meanOffset, known, sigma, weight, bilateralSigma, colourSigma, bilateralWeight] = this.library.view(Float64Array, at, 9);
    return { changed, border, meanOffset, known, kernels: [{ sigma, weight }, { sigma: bilateralSigma, colourSigma, weight: bilateralWeight }] };
  }

  /** Superpixels as cliques; undefined: none. Returns how many there are. */
  setCliques(cliques) {
    if (!cliques) {
      this.change('set_cliques', 0, 1);
      return 0;
    }
    const { method = 'slic', gamma = DEFAULT, eta = 500 } = cliques;
    if (this.superpixels !== method) {
      this.superpixels = undefined;
      this.change('superpixels', named(SUPERPIXELS, method, 'superpixel method'));
      this.superpixels = method;
    }
    this.change('set_cliques', gamma, eta);
    return this.exports.dcrf_web_region_count(this.handle);
  }

  regions() {
    return this.superpixels ? this.array(Int32Array, 'regions', this.pixels).slice() : undefined;
  }

  /**
   * Run a method. Between its steps the host gets to handle its messages, so an AbortSignal ends it; then, as
   * in the library, the best labelling so far is the result, unpolished. `ofScribbles`: on the model of the strokes,
   * with its own kernels and no cliques. A session has one run at a time: until it has ended, a second one, and
   * everything that would change the model, is an error.
   */
  async run(settings = {}) {
    this.rest();
    this.isRunning = true;
    try {
      return await this.runSteps(settings);
    } finally {
      this.isRunning = false;
    }
  }

  async runSteps({ method = 'mf', iterations = DEFAULT, gap, timeLimit, ofScribbles = false, polish = true, signal, onProgress }) {
    const begin = performance.now();
    const { exports } = this;
    if (iterations !== DEFAULT) whole(iterations, 'iterations', 1, MOST_ITERATIONS);
    this.call('start', named(METHODS, method, 'method'), iterations, limit(gap, 'gap'), limit(timeLimit, 'timeLimit'),
      ofScribbles ? 1 : 0);
    const setupMs = performance.now() - begin;
    const trace = [];
    let stop = 0, worked = performance.now();
    while (stop === 0) {
      stop = this.call('step');
      const [time, iteration, objective, energy, bestEnergy, lowerBound] =
        this.library.view(Float64Array, exports.dcrf_web_moment(), 6);
      trace.push({ time, iteration, objective, energy, bestEnergy, lowerBound });
      onProgress?.(trace.at(-1), this);
      if (stop === 0 && performance.now() - worked > WORK_MS) {
        await pause();
        worked = performance.now();
        if (signal?.aborted) stop = STOPS.indexOf('cancelled');
      }
    }
    const solveMs = performance.now() - begin - setupMs;
    this.call(polish && !signal?.aborted ? 'finish' : 'read');
    return { ...this.info(), ...this.result(), method, stop: STOPS[stop], trace,
      times: { setup: setupMs, solve: solveMs, finish: performance.now() - begin - setupMs - solveMs } };
  }

  /**
   * After a run of 'lp': which pixels have the same label in every best labelling. 1: proven, 0: not (yet). The labels of
   * result() may have become better. A time limit of the run counts here too.
   */
  prove({ timeLimit = 10 } = {}) {
    this.change('prove', timeLimit);
    return Uint8Array.from(this.array(Uint16Array, 'counts', this.pixels), (count) => (count === 1 ? 1 : 0));
  }

  info() {
    const [total, unary, pairwise, cliques, objective, lowerBound, relativeGap, iterations, constant] =
      this.library.view(Float64Array, this.exports.dcrf_web_info(this.handle), 9);
    return { energy: { total, unary, pairwise, cliques }, objective, lowerBound, relativeGap, iterations,
      isConstant: constant !== 0 };
  }

  /* Labels, and marginals with the labels of a pixel next to each other. */
  result() {
    const stride = this.exports.dcrf_web_stride(this.handle);
    const padded = this.array(Float32Array, 'marginals', this.pixels * stride);
    const marginals = new Float32Array(this.pixels * this.labels);
    for (let a = 0; a < this.pixels; a++)
      for (let i = 0; i < this.labels; i++) marginals[a * this.labels + i] = padded[a * stride + i];
    return { labels: this.array(Uint16Array, 'labelling', this.pixels).slice(), marginals };
  }

  /** The energy of any labelling. */
  energyOf(labels) {
    if (labels.length !== this.pixels)
      throw new RangeError(`labels has ${labels.length} numbers, not one for each of ${this.pixels} pixels`);
    for (let a = 0; a < this.pixels; a++) whole(labels[a], `label ${a}`, 0, this.labels - 1);
    this.array(Uint16Array, 'labelling', this.pixels).set(labels);
    const at = this.exports.dcrf_web_energy(this.handle);
    if (!at) this.library.check(-1);
    const [total, unary, pairwise, cliques] = this.library.view(Float64Array, at, 4);
    return { total, unary, pairwise, cliques };
  }
}
