/* The worker: the library and one session for each size of the picture. Jobs arrive as messages, also while one runs. */
import { refineTile } from './tile.js';
import { ERROR_INTERRUPTED, ERROR_MEMORY, load } from './load.js';
import { Session } from './session.js';
import { CLIQUES, PROOF } from './settings.js';

let library, flag, sizes = {}, engines = {};
let current; /* the job that runs: { id, controller } */
let turn = Promise.resolve();

const PAGE_BYTES = 65536, MOST_PAGES = 65535;
const TELL_MS = 100; /* between two reports of a run that takes long */
/* What the page shares with its worker: the number of the newest job, and that of one to end with what it has. */
const NEWEST = 0, FINISHED = 1;

function shouldStop() {
  return Boolean(flag && current) && (Atomics.load(flag, NEWEST) !== current.id || Atomics.load(flag, FINISHED) === current.id);
}

function freeEngines() {
  for (const engine of Object.values(engines)) engine.session.free();
  engines = {};
}

/* The session for a size and a number of labels; the kernels of its plan are kept while they fit. */
function engineFor(size, labels, source) {
  const engine = engines[size];
  if (engine?.labels === labels && engine.source === source) return engine.session;
  if (engine) {
    engine.session.free();
    delete engines[size];
  }
  const { rgba, width, height } = sizes[size];
  const session = new Session(library, { data: rgba, width, height }, labels);
  engines[size] = { session, labels, source };
  return session;
}

function confidenceOf({ labels, marginals }, count) {
  return Float32Array.from(labels, (label, a) => marginals[a * count + label]);
}

/* Set up the model of a job. `isPlain`: the model of the strokes will do as it is. */
function setModel(session, { unary, strength, cliques }) {
  const kernels = unary ? undefined : session.scribbleKernels;
  const isPlain = !unary && strength === 1 && cliques === 'none';
  if (unary?.map) session.setMask(unary.map, strength);
  else if (unary) {
    session.setUnary(unary.values, unary);
    session.useDefaultKernels(strength);
  } else if (!isPlain) session.useKernels(kernels, strength);
  return { isPlain, kernels, cliqueCount: isPlain ? 0 : session.setCliques(cliques === 'none' ? undefined : { method: cliques, ...CLIQUES }) };
}

function maskOf(session, id, size, labels, begin) {
  const { width, height } = sizes[size];
  const mask = session.result();
  return { id, size, width, height, labels: mask.labels, confidence: confidenceOf(mask, labels), milliseconds: performance.now() - begin };
}

/* The labels that every best labelling has, after a run of the LP. */
function proofOf(session, id) {
  postMessage({ type: 'stage', id, stage: 'excluding', limitS: PROOF.excludeS });
  const proven = session.prove({ timeLimit: PROOF.excludeS });
  return { proven, labels: session.result().labels, provenShare: proven.reduce((sum, one) => sum + one, 0) / proven.length };
}

async function solve(job) {
  const { id, size, labels, strokes, strength, method, isProof } = job;
  const begin = performance.now();
  const controller = new AbortController();
  current = { id, controller };
  const { width, height } = sizes[size];
  const session = engineFor(size, labels, job.unary?.id ?? 'strokes');
  if (strokes && !session.scribble(strokes)) return { type: 'cancelled', id };
  const scribbleMs = performance.now() - begin;
  if (size !== 'full') return { type: 'result', ...maskOf(session, id, size, labels, begin) };
  /* The mask of the strokes is there already; the method refines it. */
  if (strokes && !isProof) postMessage({ type: 'mask', ...maskOf(session, id, size, labels, begin) });
  const { isPlain, kernels, cliqueCount } = setModel(session, job);
  if (isProof) postMessage({ type: 'stage', id, stage: 'bounding', limitS: PROOF.boundS });
  let told = performance.now();
  const result = await session.run({ method, ...(isProof ? { gap: PROOF.gap, iterations: PROOF.iterations, timeLimit: PROOF.boundS } : {}),
    ofScribbles: isPlain, signal: controller.signal,
    onProgress(moment) {
      if (performance.now() - told < TELL_MS) return;
      told = performance.now();
      postMessage({ type: 'progress', id, moment });
    } });
  if (controller.signal.aborted && !current.wantsResult) return { type: 'cancelled', id };
  if (isProof) Object.assign(result, proofOf(session, id));
  const moves = job.unary?.map ? session.maskMoves() : undefined;
  const { marginals, ...rest } = result;
  return { type: 'result', id, size, width, height, ...rest, confidence: confidenceOf(result, labels), cliqueCount, isProof, moves,
    /* What a photograph that is larger is refined from. */
    probabilities: job.wantsProbabilities ? marginals : undefined, kernels: kernels ?? moves?.kernels,
    strengthNats: kernels ? 2 * strength * kernels.reduce((sum, { weight }) => sum + weight, 0) : session.strength, scribbleMs,
    milliseconds: performance.now() - begin };
}

/* One tile of the photograph at its full size. */
async function refine(job) {
  current = { id: job.id, controller: new AbortController() };
  return { type: 'tile', id: job.id, labels: await refineTile(library, job) };
}

/* After a trap a module is unusable; after one that wants more memory than there is, so full that a new one is better. */
function kindOf(error) {
  if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) return 'crashed';
  if (error.status === ERROR_INTERRUPTED) return 'cancelled';
  return error.status === ERROR_MEMORY ? 'full' : 'failed';
}

/* One job after the other. */
function enqueue(job) {
  turn = turn.then(async () => {
    try {
      postMessage(await (job.type === 'tile' ? refine : solve)(job));
    } catch (error) {
      postMessage({ type: kindOf(error), id: job.id, message: error.message });
    }
    current = undefined;
  });
}

onmessage = ({ data }) => {
  if (data.type === 'hello') {
    ({ flag } = data);
    turn = load({ variant: data.variant, shouldStop })
      .then((loaded) => {
        library = loaded;
        postMessage({ type: 'ready', version: library.version, variant: library.variant, threads: library.threads });
      }, (error) => postMessage({ type: 'unusable', message: `The library cannot be loaded: ${error.message}` }));
  } else if (data.type === 'picture')
    turn = turn.then(() => {
      freeEngines();
      ({ sizes } = data);
    });
  else if (data.type === 'solve' || data.type === 'tile') enqueue(data);
  else if (data.type === 'cancel') current?.controller.abort();
  else if (data.type === 'finish' && current) {
    current.wantsResult = true;
    current.controller.abort();
  } else if (data.type === 'crash') throw new Error('a test asked for it');
  else if (data.type === 'exhaust') library.memory.grow(MOST_PAGES - library.memoryBytes / PAGE_BYTES); /* so did another */
};
