/* The page: what is painted, what is chosen, what is shown. */
import { Client } from './client.js';
import { download, encodePng, energiesOfMap, parseNpy, unaryOf } from './files.js';
import { Painter } from './painter.js';
import { decode, decodeMap } from './picture.js';
import { drawPlot, figure } from './plot.js';
import { settingsOf } from './settings.js';
import { ERASER, Strokes, rasterize } from './strokes.js';
import { compose } from './views.js';

const $ = (id) => document.getElementById(id);
const METHODS = ['mf', 'qp', 'lp'];
const METHOD_NAMES = { mf: 'mean field', qp: 'quadratic relaxation', lp: 'linear relaxation, with a bound' };
const VIEW_HINTS = {
  proven: 'Coloured: proven to have this label in every best labelling. Striped: not proven (yet). “Prove it” runs the linear relaxation.',
  confidence: 'White: sure. Black: could as well be another label.',
};
/* Colours that people with colour-blind eyes tell apart (Okabe and Ito). */
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#56b4e9', '#d55e00', '#999999'];
const MOST_LABELS = 20;
const TYPICAL_CONFIDENCE = 0.7;
const HEX = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

const state = {
  picture: undefined, unary: undefined, result: undefined, trace: [], strokes: new Strokes(), current: 0, view: 'overlay',
  labels: [{ name: 'background', colour: COLOURS[0] }, { name: 'object', colour: COLOURS[1] }],
  isPainting: false, job: undefined,
};
/* For tests, and for the curious at the console. */
globalThis.playground = state;

const colours = () => state.labels.map(({ colour }) => HEX(colour));

/* ---- messages ------------------------------------------------------------------------------- */

function say(text, isTrouble = false) {
  $('message').textContent = text;
  $('message').classList.toggle('trouble', isTrouble);
}

function guarded(action) {
  return async (...args) => {
    try {
      await action(...args);
    } catch (error) {
      say(error.message, true);
    }
  };
}

/* ---- the computation ------------------------------------------------------------------------ */

const client = new Client({
  ready({ version, variant, threads }) {
    const how = { simd: 'vector instructions', threads: `vector instructions and ${threads} threads`, plain: 'plain instructions' }[variant];
    $('about').textContent = `dcrf ${version}, computed in this browser with ${how}.`;
    if (variant === 'plain') say('This browser has no WebAssembly vectors: everything works, but several times slower.', true);
    state.isReady = true;
  },
  progress({ moment }) {
    state.trace.push(moment);
    drawPlot($('plot'), state.trace);
    showFigures({ energy: { total: moment.bestEnergy }, lowerBound: moment.lowerBound, iterations: moment.iteration });
  },
  /* A first look at what is being refined. */
  mask(mask) {
    state.result = mask;
    painter.draw();
  },
  result(result) {
    state.result = result;
    if (result.trace) state.trace = result.trace;
    state.job = undefined;
    showResult();
    if (result.size === 'preview' && !state.isPainting) run('full');
    else if (state.isPainting && state.isBehind) run('preview');
  },
  failed({ message }) {
    state.job = undefined;
    say(message, true);
    showControls();
  },
});

state.client = client;

/* What can be computed now: strokes of two labels, or unaries. */
function missing() {
  if (!state.picture) return 'Open a photograph, or take the built-in scene.';
  if (state.unary) return '';
  const drawn = state.strokes.labels;
  if (drawn.size === 0) return `Paint a stroke for ${state.labels[state.current].name}, then one for another label.`;
  if (drawn.size < 2) return 'Now choose another label and paint a stroke for it.';
  return '';
}

function run(size, { isProof = false } = {}) {
  const why = missing();
  state.isBehind = false;
  if (why) {
    client.cancel();
    state.job = undefined;
    say(why);
    return;
  }
  const chosen = state.unary || isProof || !state.picture.sizes[size] ? 'full' : size;
  const { width, height, scale } = state.picture.sizes[chosen];
  state.job = {
    size: chosen, labels: state.labels.length, isProof, method: isProof ? 'lp' : METHODS[$('method').value],
    strength: 2 ** $('strength').value, cliques: $('cliques').value,
    ...(state.unary ? { unary: state.unary } : { strokes: rasterize(state.strokes.done, width, height, scale) }),
  };
  if (isProof) state.trace = [];
  client.solve(state.job);
  say(isProof ? 'Proving …' : 'Working …');
  showControls();
}

/* Something changed: what is shown no longer fits. */
function changed() {
  run(state.isPainting ? 'preview' : 'full');
  painter.draw();
  showControls();
}

/* ---- showing -------------------------------------------------------------------------------- */

function showFigures({ energy, lowerBound, relativeGap, iterations, milliseconds, provenShare, isConstant, cliqueCount, strengthNats }) {
  const rows = [['energy', figure(energy?.total)]];
  if (Number.isFinite(lowerBound)) {
    rows.push(['lower bound', figure(lowerBound)]);
    const gap = Number.isFinite(relativeGap) ? relativeGap : (energy.total - lowerBound) / Math.abs(energy.total);
    rows.push(['gap', `${(100 * gap).toPrecision(3)} %`]);
  }
  if (Number.isFinite(provenShare)) rows.push(['pixels proven', `${(100 * provenShare).toFixed(2)} %`]);
  if (iterations) rows.push(['iterations', iterations]);
  if (Number.isFinite(strengthNats)) rows.push(['strength', `${strengthNats.toPrecision(3)} nats`]);
  if (cliqueCount) rows.push(['cliques', cliqueCount]);
  if (Number.isFinite(milliseconds)) rows.push(['time', `${Math.round(milliseconds)} ms`]);
  if (isConstant) rows.push(['note', 'one label everywhere: the strength drowns the rest']);
  $('figures').replaceChildren(...rows.flatMap(([name, value]) => {
    const [dt, dd] = [document.createElement('dt'), document.createElement('dd')];
    dt.textContent = name;
    dd.textContent = value;
    return [dt, dd];
  }));
}

function showResult() {
  const { result } = state;
  if (result?.energy) {
    showFigures(result);
    drawPlot($('plot'), state.trace);
  }
  if (result?.isProof) {
    const proven = Number.isFinite(result.provenShare) ? ` ${(100 * result.provenShare).toFixed(1)} % of the pixels are certain.` : '';
    say(`Proven: no labelling is better by more than ${(100 * result.relativeGap).toPrecision(2)} %.${proven}`);
  } else if (result && result.size === 'full') {
    const reduced = state.picture.isReduced ? ` Worked on at ${result.width} x ${result.height}; the picture has ${state.picture.width} x ${state.picture.height}.` : '';
    say(`Mask found in ${Math.round(result.milliseconds)} ms.${reduced}`);
  }
  painter.draw();
  showControls();
}

function showControls() {
  const { done, undone } = state.strokes;
  $('undo').disabled = done.length === 0;
  $('redo').disabled = undone.length === 0;
  $('clear').disabled = done.length === 0;
  $('prove').disabled = Boolean(missing()) || Boolean(state.job?.isProof);
  $('stop').disabled = !state.job;
  $('save-mask').disabled = !state.result;
  $('save-json').disabled = !state.result?.energy;
  $('save-strokes').disabled = done.length === 0;
  $('drop-unary').hidden = !state.unary;
  $('method-value').textContent = METHOD_NAMES[METHODS[$('method').value]];
  $('strength-value').textContent = `× ${Number((2 ** $('strength').value).toPrecision(3))}`;
  $('size-value').textContent = `${$('size').value} px`;
  $('view-hint').textContent = VIEW_HINTS[state.view] ?? '';
  $('pictures').classList.toggle('beside', state.view === 'beside');
}

/* The composed view, kept until what it is made of changes. */
let composed = {};
function composedView() {
  const { result, picture, view } = state;
  if (!result || !picture) return undefined;
  const key = JSON.stringify([view, colours()]);
  if (composed.result !== result || composed.key !== key) {
    const { width, height } = result;
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d').putImageData(compose(view, picture.sizes[result.size].rgba, result, colours()), 0, 0);
    composed = { result, key, canvas };
  }
  return composed.canvas;
}

const painter = new Painter($('picture'), $('result'), { state, composedView, colours,
  began(point) {
    state.isPainting = true;
    client.cancel();
    state.job = undefined;
    state.strokes.begin($('erase').checked ? ERASER : state.current, $('size').value / state.picture.sizes.full.scale, point);
    painter.draw();
  },
  moved(point) {
    state.strokes.extend(point);
    painter.draw();
    /* The mask follows: a preview at a time, the next when it is there. */
    if (state.job) state.isBehind = true;
    else if (!missing() && state.picture.sizes.preview) run('preview');
  },
  ended() {
    state.isPainting = false;
    changed();
  } });

/* ---- labels --------------------------------------------------------------------------------- */

function make(name, attributes) {
  return Object.assign(document.createElement(name), attributes);
}

function showLabels() {
  $('labels').replaceChildren(...state.labels.map((label, i) => {
    const item = make('li');
    const radio = make('input', { type: 'radio', name: 'label', checked: i === state.current, onchange: () => select(i) });
    radio.setAttribute('aria-label', `paint ${label.name}`);
    const colour = make('input', { type: 'color', value: label.colour, oninput: () => { label.colour = colour.value; painter.redraw(); } });
    colour.setAttribute('aria-label', `colour of ${label.name}`);
    const name = make('input', { type: 'text', value: label.name, maxLength: 40, oninput: () => { label.name = name.value; }, onfocus: () => select(i) });
    name.setAttribute('aria-label', `name of label ${i + 1}`);
    const remove = make('button', { type: 'button', textContent: '×', disabled: state.labels.length <= 2 || Boolean(state.unary), onclick: () => removeLabel(i) });
    remove.setAttribute('aria-label', `remove ${label.name}`);
    item.append(radio, colour, name, remove);
    return item;
  }));
  $('add-label').disabled = state.labels.length >= MOST_LABELS || Boolean(state.unary);
}

function select(i) {
  state.current = Math.min(i, state.labels.length - 1);
  $('erase').checked = false;
  [...$('labels').querySelectorAll('input[type=radio]')].forEach((radio, k) => { radio.checked = k === state.current; });
}

function setLabelCount(count) {
  while (state.labels.length < count) addLabel();
  state.labels.length = count;
  state.current = 0;
  showLabels();
}

function addLabel() {
  const i = state.labels.length;
  const colour = COLOURS[i] ?? `#${((i * 2654435761) & 0xffffff).toString(16).padStart(6, '0')}`;
  state.labels.push({ name: `label ${i + 1}`, colour });
}

function removeLabel(i) {
  state.labels.splice(i, 1);
  state.strokes.removeLabel(i);
  state.result = undefined;
  select(Math.min(state.current, state.labels.length - 1));
  showLabels();
  painter.redraw();
  changed();
}

/* ---- files ---------------------------------------------------------------------------------- */

async function openPicture(blob, name) {
  say(`Opening ${name} …`);
  const picture = await decode(blob, name);
  Object.assign(state, { picture, unary: undefined, result: undefined, trace: [], job: undefined });
  state.strokes.clear();
  client.setPicture(picture);
  painter.setPicture(picture);
  $('plot').replaceChildren();
  $('figures').replaceChildren();
  showLabels();
  const reduced = picture.isReduced ? ` It has ${picture.width} x ${picture.height} pixels and is worked on at ${picture.sizes.full.width} x ${picture.sizes.full.height}.` : '';
  say(missing() + reduced);
  showControls();
  showCommand();
}

async function openUnary(file) {
  if (!state.picture) throw new Error('Open the photograph first, then its unaries.');
  const { width, height } = state.picture.sizes.full;
  if (/\.npy$/i.test(file.name)) state.unary = { ...unaryOf(parseNpy(await file.arrayBuffer()), width, height, $('unary-kind').value), name: file.name, isArray: true };
  else {
    const { map, labels } = await decodeMap(file, width, height);
    state.unary = { values: energiesOfMap(map, labels, TYPICAL_CONFIDENCE), labels, kind: 'energies', name: file.name };
  }
  setLabelCount(state.unary.labels);
  state.result = undefined;
  changed();
  showCommand();
}

/* Bring labels to the size of the photograph itself. */
function atPictureSize({ labels, width, height }) {
  const { picture } = state;
  const map = new Uint8Array(picture.width * picture.height);
  for (let y = 0, a = 0; y < picture.height; y++) {
    const row = Math.min(height - 1, Math.floor((y + 0.5) * height / picture.height)) * width;
    for (let x = 0; x < picture.width; x++, a++) map[a] = labels[row + Math.min(width - 1, Math.floor((x + 0.5) * width / picture.width))];
  }
  return map;
}

const stem = () => state.picture.name.replace(/\.\w+$/, '');

const strokesPng = () => {
  const { width, height } = state.picture;
  return encodePng(rasterize(state.strokes.done, width, height, 1), width, height);
};

function settings() {
  return settingsOf(state, { method: METHODS[$('method').value], strength: 2 ** $('strength').value, cliques: $('cliques').value, stem: stem() });
}

function showCommand() {
  $('command').replaceChildren();
  if (!state.picture) return;
  const code = document.createElement('code');
  code.textContent = `dcrf solve ${state.picture.name} --config ${stem()}-settings.json -o ${stem()}-mask.png`;
  $('command').append('The command repeats it: ', code);
}

/* ---- wiring --------------------------------------------------------------------------------- */

const on = (id, event, action) => $(id).addEventListener(event, guarded(action));

on('open', 'change', async (event) => {
  const [file] = event.target.files;
  event.target.value = '';
  if (file) await openPicture(file, file.name);
});
on('scene', 'click', async () => openPicture(await (await fetch('scene.png')).blob(), 'scene.png'));
on('load-unary', 'change', async (event) => {
  const [file] = event.target.files;
  event.target.value = '';
  if (file) await openUnary(file);
});
on('drop-unary', 'click', () => {
  state.unary = undefined;
  state.result = undefined;
  setLabelCount(Math.max(2, 1 + Math.max(...state.strokes.labels, 1)));
  changed();
  showCommand();
});
for (const id of ['method', 'strength', 'cliques']) on(id, 'input', () => {
  showControls();
  if (state.picture) changed();
});
on('size', 'input', showControls);
on('add-label', 'click', () => {
  addLabel();
  showLabels();
  select(state.labels.length - 1);
});
on('undo', 'click', () => { if (state.strokes.undo()) { painter.redraw(); changed(); } });
on('redo', 'click', () => { if (state.strokes.redo()) { painter.redraw(); changed(); } });
on('clear', 'click', () => {
  state.strokes.clear();
  state.result = undefined;
  painter.redraw();
  changed();
});
on('prove', 'click', () => run('full', { isProof: true }));
on('stop', 'click', () => (state.job?.isProof ? client.finish() : (client.cancel(), state.job = undefined, say('Stopped.'), showControls())));
on('save-mask', 'click', async () => {
  const { width, height } = state.picture;
  download(`${stem()}-mask.png`, await encodePng(atPictureSize(state.result), width, height, colours()));
});
on('save-strokes', 'click', async () => download(`${stem()}-strokes.png`, await strokesPng()));
on('save-json', 'click', () => download(`${stem()}-settings.json`, new Blob([`${JSON.stringify(settings(), null, 2)}\n`], { type: 'application/json' })));
on('views', 'change', (event) => {
  state.view = event.target.value;
  showControls();
  painter.draw();
});

/* Drop and paste. */
function dropped(files) {
  const [file] = files;
  if (!file) return undefined;
  return /\.npy$/i.test(file.name) ? openUnary(file) : openPicture(file, file.name);
}
for (const name of ['dragenter', 'dragover'])
  document.addEventListener(name, (event) => {
    event.preventDefault();
    $('pictures').classList.add('dropping');
  });
for (const name of ['dragleave', 'drop']) document.addEventListener(name, () => $('pictures').classList.remove('dropping'));
document.addEventListener('drop', guarded((event) => {
  event.preventDefault();
  return dropped(event.dataTransfer.files);
}));
document.addEventListener('paste', guarded((event) => dropped(event.clipboardData.files)));

/* Keys; not while typing a name. */
const VIEWS = ['overlay', 'mask', 'boundaries', 'confidence', 'proven', 'beside'];
const KEYS = {
  z: () => $('undo').click(),
  Z: () => $('redo').click(),
  y: () => $('redo').click(),
  e: () => $('erase').click(),
  p: () => $('prove').click(),
  v: () => document.querySelector(`input[name=view][value=${VIEWS[(VIEWS.indexOf(state.view) + 1) % VIEWS.length]}]`).click(),
  '[': () => { $('size').stepDown(); showControls(); },
  ']': () => { $('size').stepUp(); showControls(); },
};
document.addEventListener('keydown', (event) => {
  if (event.target.matches('input[type=text], select') || event.altKey) return;
  if ((event.ctrlKey || event.metaKey) && !'zZy'.includes(event.key)) return;
  if (/^[1-9]$/.test(event.key) && Number(event.key) <= state.labels.length) select(Number(event.key) - 1);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

if (navigator.serviceWorker && location.protocol !== 'file:') navigator.serviceWorker.register('offline.js').catch(() => {});

showLabels();
showControls();
guarded(async () => openPicture(await (await fetch('scene.png')).blob(), 'scene.png'))();
