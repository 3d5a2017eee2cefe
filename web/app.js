/* The page: what is painted, what is chosen, what is shown. */
import { Autosave, restore } from './autosave.js';
import { Client } from './client.js';
import { Countdown } from './countdown.js';
import { showExamples } from './examples.js';
import { rowsOf, sentenceOf, showRows } from './figures.js';
import { download, encodePng, parseNpy, reduced, unaryOf } from './files.js';
import { maskAtFullSize } from './fullsize.js';
import { acceptFiles, listenToKeys } from './inputs.js';
import { Labels } from './labels.js';
import { readLabelMap, readStrokes, resized } from './maps.js';
import { cutOut, maskPng, npyOf, overlay } from './outputs.js';
import { Painter } from './painter.js';
import { canvasOf, decode, openPixels } from './picture.js';
import { drawPlot } from './plot.js';
import { Pointers } from './pointers.js';
import { PROOF, settingsOf } from './settings.js';
import { ERASER, Strokes, labelsOn, rasterize } from './strokes.js';
import { compose } from './views.js';
import { Viewport } from './viewport.js';

const $ = (id) => document.getElementById(id);
const METHOD_HINTS = { mf: 'Fast; no statement about how good it is.', qp: 'The quadratic relaxation: slower, often a lower energy.', lp: 'The linear relaxation: slowest, with a lower bound.' };
const VIEW_HINTS = {
  proven: 'Coloured: proven to have this label in every best labelling. Striped: not proven (yet). “Prove it” runs the linear relaxation.',
  confidence: 'White: sure. Black: could as well be another label.',
};
/* How long the brush rests before a large photograph is worked on at more than a draft's size. */
const REST_MS = 1500;
const ZOOM_STEP = 1.5;

const state = {
  picture: undefined, unary: undefined, result: undefined, trace: [], strokes: new Strokes(), view: 'overlay', isPainting: false, job: undefined,
  pointer: undefined, waiters: [],
};
/* For tests, and for the curious at the console. */
globalThis.playground = state;

const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const choose = (name, value) => { document.querySelector(`input[name=${name}][value=${value}]`).checked = true; };
const choices = () => ({ method: chosen('method'), strength: 2 ** $('strength').value, cliques: $('cliques').value, stem: stem() });
const stem = () => state.picture.name.replace(/\.\w+$/, '');

/* ---- messages ------------------------------------------------------------------------------- */

function say(text, isTrouble = false) {
  $('message').textContent = text;
  $('message').classList.toggle('trouble', isTrouble);
}

function showProgress(part) {
  $('progress').hidden = part === undefined;
  if (part !== undefined) $('progress').value = part;
}

function guarded(action) {
  return async (...args) => {
    try {
      await action(...args);
    } catch (error) {
      showProgress();
      say(error.message, true);
    }
  };
}

/* ---- the computation ------------------------------------------------------------------------ */

const countdown = new Countdown((text, part) => {
  say(text);
  showProgress(part);
});

/* A job is over, well or not. */
function ended() {
  state.job = undefined;
  countdown.stop();
  showProgress();
}

const client = new Client({
  ready({ version, variant, threads }) {
    const how = { simd: 'vector instructions', threads: `vector instructions and ${threads} threads`, plain: 'plain instructions: it has no WebAssembly vectors, so everything takes several times longer' }[variant];
    $('about').textContent = `dcrf ${version}, computed in this browser with ${how}.`;
    state.variant = variant;
    state.isReady = true;
  },
  progress({ moment }) {
    state.trace.push(moment);
    countdown.gap = (moment.bestEnergy - moment.lowerBound) / Math.abs(moment.bestEnergy);
    drawPlot($('plot'), state.trace);
    showRows($('figures'), rowsOf({ energy: { total: moment.bestEnergy }, lowerBound: moment.lowerBound, iterations: moment.iteration }));
  },
  stage({ stage, limitS }) {
    countdown.start(stage, limitS, stage === 'bounding' ? PROOF.excludeS : 0);
  },
  /* A first look at what is being refined. */
  mask(mask) {
    state.result = mask;
    painter.draw();
  },
  result(result) {
    state.result = result;
    if (result.trace) state.trace = result.trace;
    ended();
    showResult();
    if (state.isPainting) {
      if (state.isBehind) run('preview');
    } else if (result.size === 'preview') run('draft');
    else if (result.size === 'draft') rest();
    if (result.size === 'full') answer((waiter) => waiter.done(result));
  },
  failed({ message }) {
    ended();
    say(message, true);
    showControls();
    answer((waiter) => waiter.failed(new Error(message)));
  },
});
state.client = client;

function answer(how) {
  state.waiters.splice(0).forEach(how);
}

/* What can be computed now: strokes of two labels, or unaries. */
function missing(drawn = state.strokes.labels.size) {
  if (!state.picture) return 'Open a photograph, or take one of the examples.';
  if (state.unary) return '';
  if (drawn === 0) return `Paint a stroke for ${labels.currentName}, then one for another label.`;
  if (drawn < 2) return 'Now choose another label and paint a stroke for it.';
  return '';
}

/* Nothing can be computed, and what was is gone: a mask that the strokes do not have cannot be saved. */
function give(why) {
  client.cancel();
  ended();
  state.result = undefined;
  say(why);
  painter.draw();
  showControls();
}

function run(size, { isProof = false } = {}) {
  clearTimeout(state.resting);
  state.isBehind = false;
  if (missing()) return give(missing());
  const { sizes, isReduced } = state.picture;
  const wanted = state.unary || isProof ? 'full' : size === 'draft' && !sizes.draft ? 'full' : sizes[size] ? size : 'full';
  const { width, height, scale } = sizes[wanted];
  const strokes = state.unary ? undefined : rasterize(state.strokes.done, width, height, scale);
  const drawn = strokes && labelsOn(strokes).length; /* what was painted over or erased does not count */
  if (strokes && missing(drawn)) return give(missing(drawn));
  const { method, strength, cliques } = choices();
  state.job = { size: wanted, labels: labels.all.length, isProof, method: isProof ? 'lp' : method, strength, cliques, strokes,
    unary: state.unary && { ...state.unary, blob: undefined }, wantsProbabilities: isReduced };
  if (wanted === 'full') state.trace = [];
  countdown.gap = undefined;
  client.solve(state.job);
  if (!state.isPainting) say(isProof ? 'Proving …' : 'Working …');
  return showControls();
}

/* A draft is there; more when the brush has rested. */
function rest() {
  say('A draft; it is refined when the brush rests.');
  state.resting = setTimeout(() => run('full'), REST_MS);
}

/* Something changed: what is shown no longer fits. */
function changed() {
  run(state.isPainting ? 'preview' : 'draft');
  painter.draw();
  showControls();
  autosave.soon();
}

/* The result at the size that counts, which may have to be computed first. */
function whenFull() {
  if (state.result?.size === 'full' && !state.job) return Promise.resolve(state.result);
  return new Promise((done, failed) => {
    state.waiters.push({ done, failed });
    if (state.job?.size !== 'full') run('full');
  });
}

/* ---- showing -------------------------------------------------------------------------------- */

function showResult() {
  const { result } = state;
  if (result?.energy) {
    showRows($('figures'), rowsOf(result));
    drawPlot($('plot'), state.trace);
  }
  if (result?.size === 'full') say(sentenceOf(result, state.picture));
  painter.draw();
  showControls();
}

function showControls() {
  const { done, past, future } = state.strokes, hasResult = Boolean(state.result);
  for (const id of ['undo', 'quick-undo']) $(id).disabled = past.length === 0;
  for (const id of ['redo', 'quick-redo']) $(id).disabled = future.length === 0;
  $('clear').disabled = $('save-strokes').disabled = done.length === 0;
  $('prove').disabled = Boolean(missing()) || Boolean(state.job?.isProof);
  $('stop').disabled = !state.job;
  for (const id of ['save-mask', 'save-cutout', 'save-overlay', 'save-json']) $(id).disabled = !hasResult;
  $('save-cutout').textContent = `Cut-out of ${labels.all[cutLabel()].name}`;
  $('drop-unary').hidden = !state.unary;
  $('method-hint').textContent = METHOD_HINTS[chosen('method')];
  $('strength-value').textContent = `× ${Number((2 ** $('strength').value).toPrecision(3))}`;
  $('size-value').textContent = `${$('size').value} px`;
  $('quick-size').value = $('size').value;
  $('quick-erase').setAttribute('aria-pressed', String($('erase').checked));
  $('view-hint').textContent = VIEW_HINTS[state.view] ?? '';
  $('pictures').classList.toggle('beside', state.view === 'beside');
  $('zoom-value').textContent = `${Math.round(100 * viewport.zoom)} %`;
  $('zoom-fit').disabled = $('zoom-out').disabled = viewport.isWhole;
}

/* What is cut out: the label that is chosen, never the first one, the background. */
const cutLabel = () => Math.max(1, labels.current);

/* What lies over the photograph, kept until what it is made of changes. */
let composed = {};
function layer() {
  const { result, picture, view } = state, opacity = $('opacity').value / 100;
  if (!result || !picture) return undefined;
  const key = JSON.stringify([view, labels.colours, opacity]);
  if (composed.result !== result || composed.key !== key) {
    const canvas = canvasOf(result.width, result.height);
    canvas.getContext('2d').putImageData(compose(view, result, labels.colours, opacity), 0, 0);
    composed = { result, key, canvas };
  }
  return composed.canvas;
}

/* ---- painting ------------------------------------------------------------------------------- */

const labels = new Labels({
  list: $('labels'), chips: $('chips'), add: $('add-label'), isFixed: () => Boolean(state.unary),
  recoloured() {
    painter.redraw();
    autosave.soon();
  },
  renamed() {
    showControls();
    autosave.soon();
  },
  selected() {
    $('erase').checked = false;
    if (state.picture && missing() && !state.job) say(missing());
    showControls();
  },
  removed(i) {
    state.strokes.removeLabel(i);
    state.result = undefined;
    painter.redraw();
    changed();
  },
});
state.labels = labels;
const viewport = new Viewport();
state.viewport = viewport;
const brushSize = () => $('size').value / state.picture.sizes.full.scale;
const painter = new Painter($('picture'), $('result'), { state, viewport, layer, colours: () => labels.colours,
  brush: () => ({ at: state.unary ? undefined : state.pointer, radius: brushSize() / 2 }) });

new Pointers($('picture'), viewport, {
  isReady: () => Boolean(state.picture),
  keyStep: () => 1 / state.picture.sizes.full.scale,
  hovered(point) {
    state.pointer = point;
    painter.draw();
  },
  began(point) {
    if (state.unary) say('Strokes do not count beside a mask or unaries. “Back to strokes” leaves them.');
    state.isPainting = true;
    clearTimeout(state.resting);
    client.cancel();
    ended();
    state.strokes.begin($('erase').checked ? ERASER : labels.current, brushSize(), point);
    painter.draw();
  },
  moved(point) {
    state.strokes.extend(point);
    painter.draw();
    /* The mask follows: a preview at a time, the next when it is there. */
    if (state.job) state.isBehind = true;
    else if (!missing() && state.picture.sizes.preview && !state.unary) run('preview');
  },
  ended() {
    state.isPainting = false;
    if (state.unary) state.strokes.forget();
    painter.redraw();
    changed();
  },
  forgotten() {
    state.isPainting = false;
    state.strokes.forget();
    painter.redraw();
    if (!missing()) run('draft');
  },
  viewChanged() {
    painter.redraw();
    showControls();
  } });

/* ---- files ---------------------------------------------------------------------------------- */

async function openPicture(blob, name) {
  say(`Opening ${name} …`);
  const picture = await decode(blob, name);
  state.picture?.bitmap?.close();
  Object.assign(state, { picture, result: undefined, trace: [], pointer: undefined });
  dropUnary();
  clearTimeout(state.resting);
  ended();
  state.strokes.reset();
  client.setPicture(picture);
  painter.setPicture(picture);
  $('plot').replaceChildren();
  $('figures').replaceChildren();
  labels.select(1);
  labels.show();
  const large = picture.isReduced ? ` It has ${picture.width} x ${picture.height} pixels and is worked on at ${picture.sizes.full.width} x ${picture.sizes.full.height}; what you save is refined at its full size.` : '';
  say(`${missing()}${picture.note ? ` ${picture.note}` : ''}${large}`);
  showControls();
  showCommand();
  autosave.soon();
}

/* Back to the labels that were there before a file brought its own. */
function dropUnary() {
  state.unary = undefined;
  if (state.ownLabels) labels.all = state.ownLabels;
  state.ownLabels = undefined;
}

let unaries = 0; /* so far: each has a model of its own */
function useUnary(unary, colours) {
  state.ownLabels ??= structuredClone(labels.all);
  state.unary = { ...unary, id: ++unaries };
  state.result = undefined;
  labels.setCount(unary.labels, colours);
  painter.redraw();
  changed();
  showCommand();
}

function needPicture(what) {
  if (!state.picture) throw new Error(`Open the photograph first, then its ${what}.`);
}

async function openArray(file, name = file.name, kind = $('unary-kind').value) {
  needPicture('unaries');
  const array = unaryOf(parseNpy(await file.arrayBuffer()), state.picture, kind);
  useUnary({ ...reduced(array, state.picture.sizes.full), name, blob: file, isArray: true });
}

async function openMask(file, name = file.name) {
  needPicture('mask');
  const { picture } = state, read = await readLabelMap(file, name, picture.width, picture.height);
  useUnary({ map: resized(read.map, picture, picture.sizes.full), labels: read.labels, name, blob: file, note: read.note }, read.colours);
}

async function openStrokes(file, name = file.name) {
  needPicture('strokes');
  const { width, height } = state.picture, read = await readStrokes(file, name, width, height);
  dropUnary();
  if (read.labels > labels.all.length || read.colours) labels.setCount(Math.max(2, read.labels), read.colours);
  labels.show();
  state.strokes.load(read.map, width, height);
  painter.redraw();
  changed();
  showCommand();
}

/* The labels of the result at the photograph's size; edges of large ones are refined, which takes some seconds. */
async function fullMask(pixels) {
  const result = await whenFull();
  if (state.fullMask?.result !== result) {
    const map = await maskAtFullSize(result, pixels, labels.all.length, { variant: state.variant,
      onProgress(done, all) {
        say(`Refining the edges at ${pixels.width} x ${pixels.height}: ${done} of ${all} tiles …`);
        showProgress(done / all);
      } });
    showProgress();
    state.fullMask = { result, map };
    if (state.picture.isReduced) say(`The edges are refined at ${pixels.width} x ${pixels.height}.`);
  }
  return state.fullMask.map;
}

/* Save what is made of the mask and the photograph's own pixels. */
async function saveMade(ending, make) {
  const name = `${stem()}-${ending}.png`, pixels = await openPixels(state.picture);
  try {
    download(name, await make(await fullMask(pixels), pixels));
  } finally {
    pixels.close();
  }
}

async function saveSettings() {
  const result = await whenFull(), json = settingsOf({ ...state, labels: labels.all }, choices());
  download(`${stem()}-settings.json`, new Blob([`${JSON.stringify(json, null, 2)}\n`], { type: 'application/json' }));
  if (state.picture.isReduced) download(`${stem()}-probabilities.npy`, npyOf(result.probabilities, [result.height, result.width, labels.all.length]));
}

function showCommand() {
  $('command').replaceChildren();
  if (!state.picture) return;
  const code = document.createElement('code');
  code.textContent = `dcrf solve ${state.picture.name} --config ${stem()}-settings.json -o ${stem()}-mask.png`;
  $('command').append(`With ${state.unary ? 'your file' : state.picture.isReduced ? 'the probabilities' : 'the strokes'} and the settings in one folder the command repeats it: `, code);
}

/* ---- what a reload brings back -------------------------------------------------------------- */

const CHOICES = ['strength', 'cliques', 'size', 'opacity'];
const autosave = new Autosave(() => state.picture && ({
  blob: state.picture.blob, name: state.picture.name, labels: labels.all, current: labels.current, view: state.view, method: chosen('method'),
  strokes: { done: state.strokes.done, past: state.strokes.past, future: state.strokes.future },
  unary: state.unary && { blob: state.unary.blob, name: state.unary.name, isArray: state.unary.isArray, kind: state.unary.kind },
  choices: Object.fromEntries(CHOICES.map((id) => [id, $(id).value])), ownLabels: state.ownLabels,
}));
state.autosave = autosave;

async function bringBack(kept) {
  await openPicture(kept.blob, kept.name);
  for (const id of CHOICES) $(id).value = kept.choices[id];
  choose('method', kept.method);
  choose('view', kept.view);
  state.view = kept.view;
  labels.all = kept.labels;
  labels.current = kept.current;
  labels.show();
  Object.assign(state.strokes, kept.strokes);
  if (kept.unary) await (kept.unary.isArray ? openArray : openMask)(kept.unary.blob, kept.unary.name, kept.unary.kind);
  labels.all = kept.labels; /* a mask has set their number */
  state.ownLabels = kept.ownLabels;
  labels.show();
  painter.redraw();
  if (missing()) say(missing());
  else changed();
  showControls();
}

const openScene = async () => openPicture(await (await fetch('scene.png')).blob(), 'scene.png');

async function begin() {
  const kept = await restore();
  if (!kept?.blob) return openScene();
  try {
    return await bringBack(kept);
  } catch (error) {
    await openScene();
    return say(`What was kept could not be opened: ${error.message}`, true);
  }
}

/* ---- wiring --------------------------------------------------------------------------------- */

const on = (id, event, action) => $(id).addEventListener(event, guarded(action));
const onFile = (id, open) => on(id, 'change', async (event) => {
  const [file] = event.target.files;
  event.target.value = '';
  if (file) await open(file, file.name);
});

onFile('open', openPicture);
onFile('load-mask', openMask);
onFile('load-strokes', openStrokes);
onFile('load-unary', (file) => openArray(file));
on('drop-unary', 'click', () => {
  state.result = undefined;
  dropUnary();
  labels.show();
  painter.redraw();
  changed();
  showCommand();
});
for (const id of ['methods', 'strength', 'cliques']) on(id, 'input', () => {
  showControls();
  if (state.picture) changed();
});
function setBrush(size) {
  $('size').value = size;
  showControls();
  painter.draw();
  autosave.soon();
}
on('size', 'input', () => setBrush($('size').value));
on('quick-size', 'input', () => setBrush($('quick-size').value));
on('erase', 'change', showControls);
on('quick-erase', 'click', () => $('erase').click());
on('opacity', 'input', () => {
  painter.draw();
  autosave.soon();
});
on('add-label', 'click', () => {
  labels.add();
  labels.show();
  labels.select(labels.all.length - 1);
  autosave.soon();
});
function history(move) {
  if (!state.strokes[move]()) return;
  painter.redraw();
  changed();
}
for (const prefix of ['', 'quick-']) for (const move of ['undo', 'redo']) on(`${prefix}${move}`, 'click', () => history(move));
on('clear', 'click', () => {
  state.strokes.clear();
  painter.redraw();
  changed();
  say(`Cleared; Undo brings the strokes back. ${missing()}`);
});
on('prove', 'click', () => run('full', { isProof: true }));
on('stop', 'click', () => {
  if (state.job?.isProof) return client.finish(countdown.stage === 'excluding');
  client.cancel();
  ended();
  say('Stopped.');
  return showControls();
});
on('save-mask', 'click', () => saveMade('mask', (map, pixels) => maskPng(map, pixels, labels.colours)));
on('save-cutout', 'click', () => saveMade(`${labels.all[cutLabel()].name.replace(/[^\p{L}\p{N}]+/gu, '-')}`, (map, pixels) => cutOut(map, pixels, cutLabel())));
on('save-overlay', 'click', () => saveMade('overlay', (map, pixels) => overlay(map, pixels, labels.colours, $('opacity').value / 100)));
on('save-strokes', 'click', async () => {
  const { width, height } = state.picture;
  download(`${stem()}-strokes.png`, await encodePng(rasterize(state.strokes.done, width, height, 1), width, height));
});
on('save-json', 'click', saveSettings);
on('views', 'change', (event) => {
  if (event.target.name !== 'view') return;
  state.view = event.target.value;
  showControls();
  painter.draw();
  autosave.soon();
});
function zoom(factor) {
  if (factor) viewport.zoomAt(factor, state.pointer ?? viewport.at(0.5, 0.5));
  else viewport.reset();
  painter.redraw();
  showControls();
}
on('zoom-in', 'click', () => zoom(ZOOM_STEP));
on('zoom-out', 'click', () => zoom(1 / ZOOM_STEP));
on('zoom-fit', 'click', () => zoom(0));
on('help', 'click', () => $('keys').showModal());

showExamples($('examples'), { openScene: guarded(openScene), open: guarded(openPicture) });
acceptFiles($('pictures'), guarded((file, name) => {
  /* What the page saved is known by its name. */
  const open = /\.npy$/i.test(name) ? openArray : /-strokes\.png$/i.test(name) ? openStrokes : /[-_]mask\.\w+$/i.test(name) ? openMask : openPicture;
  return open(file, name);
}));
listenToKeys({ setBrush, zoom, zoomStep: ZOOM_STEP, view: () => state.view, hasLabel: (i) => i < labels.all.length, selectLabel: (i) => labels.select(i) });

if (navigator.serviceWorker && location.protocol !== 'file:') navigator.serviceWorker.register('offline.js').catch(() => {});

labels.show();
showControls();
guarded(begin)();
