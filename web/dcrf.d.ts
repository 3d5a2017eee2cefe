/** dcrf in JavaScript: the best labelling of an image under a dense conditional random field, and a proof of how good it is. */

/** Bytes, 1 (grey), 3 (red, green, blue) or 4 (the fourth is not read) to a pixel, row after row. */
export interface Image {
  data: Uint8Array | Uint8ClampedArray;
  /** Whole numbers; a fraction, or more pixels than 2^31 - 1, is a RangeError. */
  width: number;
  height: number;
}

/**
 * A kernel over pixel distance (spatial), or with `colourSigma` over pixel and colour distance (bilateral).
 * Disagreeing with everything costs a pixel twice the sum of the weights.
 */
export interface Kernel {
  /** In pixels. */
  sigma: number;
  /** In units of the colours, 0 to 255. */
  colourSigma?: number;
  weight: number;
  /** By default 'symmetric': divided by the square roots of the row sums on both sides. */
  normalize?: 'symmetric' | 'none';
}

/** Superpixels whose pixels should agree; one that does not costs gamma * exp(-variance / eta). */
export interface Cliques {
  method?: 'slic' | 'meanshift';
  /** By default what suits the strength. */
  gamma?: number;
  eta?: number;
}

export type Method = 'mf' | 'qp' | 'lp';

export interface Energy {
  total: number;
  unary: number;
  pairwise: number;
  cliques: number;
}

/** One moment of a run. What is not known at that moment is NaN. */
export interface Moment {
  /** Seconds since the run began. */
  time: number;
  iteration: number;
  objective: number;
  energy: number;
  bestEnergy: number;
  lowerBound: number;
}

export interface RunSettings {
  /** Mean field (the default), or the quadratic or linear relaxation; only 'lp' gives a lower bound. */
  method?: Method;
  /** A whole number. */
  iterations?: number;
  /** Stop when the energy is proven to be within this fraction of the optimum. */
  gap?: number;
  /** In seconds, for the iterations. */
  timeLimit?: number;
  /** False: leave out the moves of pixels and classes after the last step. */
  polish?: boolean;
  /** Ends the run between two steps; the best labelling so far is the result. */
  signal?: AbortSignal;
  onProgress?(moment: Moment): void;
}

export interface Result {
  /** One label for each pixel. */
  labels: Uint16Array;
  /** Probabilities, the labels of a pixel next to each other. */
  marginals: Float32Array;
  energy: Energy;
  objective: number;
  /** No labelling has lower energy. NaN without 'lp'. */
  lowerBound: number;
  relativeGap: number;
  iterations: number;
  /** One label everywhere: the weights drown the unaries. */
  isConstant: boolean;
  method: Method;
  stop: 'gap' | 'stationary' | 'iterations' | 'time' | 'cancelled';
  trace: Moment[];
  /** Milliseconds. */
  times: { setup: number; solve: number; finish: number };
}

export interface UnaryOptions {
  /** What the numbers are: energies (low is likely, the default), probabilities, or logits. */
  kind?: 'energies' | 'probabilities' | 'logits';
  /** 'hwc' (the default): the labels of a pixel next to each other; 'chw': one plane for each label. */
  layout?: 'hwc' | 'chw';
}

export interface Problem extends RunSettings, UnaryOptions {
  image: Image;
  /** One number for each pixel and label. */
  unary: ArrayLike<number>;
  /** How many; by default what fits the size of `unary`. */
  labels?: number;
  /** By default a spatial and a bilateral one, with the strength that suits the unaries. */
  kernels?: Kernel[];
  /** Twice the sum of the weights, in nats: multiplies those of `kernels`, or replaces the automatic one. */
  strength?: 'auto' | number;
  cliques?: Cliques;
  /** Of load(); by default one that is loaded with the first problem and uses one thread. */
  library?: Library;
}

/** The best labelling of an image for given unaries. */
export function solve(problem: Problem): Promise<Result>;

export interface ScribbleProblem {
  image: Image;
  /** The label of each pixel that was drawn on, 255 elsewhere; two labels or more. */
  strokes: Uint8Array;
  /** How many; by default one more than the largest in `strokes`. */
  labels?: number;
  library?: Library;
}

/** From strokes to a mask. */
export function scribble(problem: ScribbleProblem): Promise<{ labels: Uint16Array; marginals: Float32Array }>;

export interface MaskProblem {
  image: Image;
  /** A label for each pixel, below zero where it is not known. */
  mask: ArrayLike<number>;
  /** How many; by default one more than the largest in `mask`. */
  labels?: number;
  library?: Library;
}

/** Move the borders of a rough mask to where the image has them. */
export function refine(problem: MaskProblem): Promise<Result & { moves: ReturnType<Session['maskMoves']> }>;

export interface LoadOptions {
  /** By default what this host does best. */
  variant?: 'simd' | 'threads' | 'plain';
  /** How many may work where memory can be shared; by default one for each core. */
  threads?: number;
  /** Where the .wasm files are; by default beside this module. */
  base?: string | URL;
  /** Asked from inside long calls: whether to end them. */
  shouldStop?(): boolean;
}

/** Load the WebAssembly module. */
export function load(options?: LoadOptions): Promise<Library>;
export function hasVectors(): boolean;
export function canShareMemory(): boolean;

/** A loaded module. */
export class Library {
  readonly version: string;
  readonly cpu: 'simd128' | 'c';
  readonly threads: number;
  readonly memoryBytes: number;
  /** End its threads. */
  close(): void;
}

/**
 * One image and its model, for several runs, one at a time: what is computed once is kept. While a run is under way a second
 * one, and whatever would change the model, is an error, and so is every use after free().
 */
export class Session {
  constructor(library: Library, image: Image, labels: number);
  readonly width: number;
  readonly height: number;
  readonly pixels: number;
  readonly labels: number;
  /** `width` and `height` of the numbers, where they are for fewer pixels than the image has: then they are enlarged, guided by it. */
  setUnary(values: ArrayLike<number>, options?: UnaryOptions & { width?: number; height?: number }): void;
  /** A rough mask: a label for each pixel, below zero where it is not known. It becomes unaries and kernels, their weights times `factor`.
   * `sureness`: from 0 (the mask says nothing here) to 1 (its label binds here). */
  setMask(map: ArrayLike<number>, factor?: number, sureness?: ArrayLike<number>): void;
  /** How far the last labels have moved from the mask; distances in pixels. */
  maskMoves(): { changed: number; border: number; meanOffset: number; known: number; kernels: Kernel[] };
  /** Returns the kernel's number. */
  addKernel(kernel: Kernel): number;
  setWeight(kernel: number, weight: number): void;
  /** The default kernels, with the strength that suits the unaries, times `factor`. */
  useDefaultKernels(factor?: number): void;
  /** What it costs a pixel to disagree with everything, in nats: twice the sum of the weights. */
  strength: number;
  /** Returns how many cliques there are; without an argument none. */
  setCliques(cliques?: Cliques): number;
  /** Strokes make a mask and the unary energies. False where `shouldStop` said so. */
  scribble(strokes: Uint8Array): boolean;
  readonly scribbleKernels: Kernel[];
  run(settings?: RunSettings): Promise<Result>;
  /** After a run of 'lp': 1 for each pixel that has the same label in every best labelling. `timeLimit` is in seconds; the run's holds too. */
  prove(settings?: { timeLimit?: number }): Uint8Array;
  /** The last labels and marginals. */
  result(): { labels: Uint16Array; marginals: Float32Array };
  energyOf(labels: ArrayLike<number>): Energy;
  /** Give the memory back. */
  free(): void;
}
