/* What people bring to the page in Chromium: rough masks, unaries, TIFF, large photographs. Run from the root of the repository, after
 * script/build and script/build-web:   node --test tests/web/files.test.mjs     (SCREENSHOTS=DIRECTORY keeps pictures of the page) */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { deflateSync } from 'node:zlib';
import { drag, launch, open, serve, settled } from './browser.mjs';
import { readNpy, readPng } from './read.mjs';
import { Visitor } from './visitor.mjs';
import { encodePng } from '../../web/files.js';
import { readIndexed } from '../../web/indexed.js';

const scratch = mkdtempSync(join(tmpdir(), 'dcrf-files-'));
let server, browser, page, errors;
const visitor = new Visitor(() => page, scratch);

before(async () => {
  execFileSync('build/examples/scene', [scratch]);
  const { numbers, width, height } = await readIndexed(new Blob([readFileSync(join(scratch, 'truth.png'))]));
  truth = { data: numbers, width, height };
  server = await serve();
  browser = await launch();
  ({ page, errors } = await open(browser.context, server.url));
});
after(async () => {
  await browser?.close();
  server?.stop();
  rmSync(scratch, { recursive: true });
});

const scene = () => readPng('docs/images/scene.png');
/* The scene's labels, which lie in an indexed PNG of 4 bits: { data, width, height }. */
let truth;

/* A grey (or with colours an indexed) PNG beside what the page saves. */
async function writeMap(name, map, { width, height }, colours) {
  const blob = await encodePng(Uint8Array.from(map), width, height, colours);
  writeFileSync(join(scratch, name), Buffer.from(await blob.arrayBuffer()));
  return join(scratch, name);
}

/* Blocks of 8 pixels: what a coarse network or a hurried hand leaves. */
function inBlocks(map, width, height) {
  return map.map((_, a) => map[Math.min(height - 1, (Math.floor(a / width) & ~7) + 4) * width + Math.min(width - 1, (a % width & ~7) + 4)]);
}

async function load(input, path) {
  await page.setInputFiles(input, path);
  await page.waitForFunction((name) => playground.unary?.name === name, path.split('/').at(-1));
  await settled(page);
}

const labelsOf = () => page.evaluate(() => [...playground.result.labels]);
const overlap = (a, b, label) => {
  const both = a.reduce((sum, one, i) => sum + (one === label && b[i] === label ? 1 : 0), 0);
  return both / a.reduce((sum, one, i) => sum + (one === label || b[i] === label ? 1 : 0), 0);
};

test('a rough mask of 0 and 255 is refined as the command refines it, and what was done is said', async () => {
  const { data, width, height } = truth, object = Array.from(data, (label) => (label === 3 ? 1 : 0)), rough = inBlocks(object, width, height);
  await load('#load-mask', await writeMap('rough.png', rough.map((one) => 255 * one), truth));
  assert.match(await visitor.message(), /borders moved by \d+\.\d pixels on average; \d+\.\d % of the pixels changed/);
  await visitor.picture('rough-mask');
  const refined = await labelsOf();
  assert.ok(overlap(refined, object, 1) > overlap(rough, object, 1) + 0.01, `${overlap(refined, object, 1)}, rough ${overlap(rough, object, 1)}`);
  await visitor.compareWithCommand('docs/images/scene.png');
  /* A reload brings it back. */
  await page.evaluate(() => playground.autosave.now());
  await page.reload();
  await page.waitForFunction(() => globalThis.playground?.isReady && playground.unary?.name === 'rough.png');
  await settled(page);
  assert.deepEqual(await labelsOf(), refined);
  /* The command says the same in its own words. */
  const text = execFileSync('build/dcrf', ['solve', 'docs/images/scene.png', '--labels-prior', join(scratch, 'rough.png')], { encoding: 'utf8' });
  const figures = (words) => words.match(/borders moved by ([\d.]+) pixels on average; ([\d.]+) % of/).slice(1).map(Number), said = await visitor.message();
  /* The page rounds to one decimal, the command to two at least. */
  figures(said).forEach((shown, i) => assert.ok(Math.abs(shown - figures(text)[i]) < 0.056, `${said}; ${text}`));
});

test('soft masks and label maps, indexed too, are the command\'s', async () => {
  const { data, width, height } = truth, object = Array.from(data, (label) => (label === 3 ? 255 : 0));
  const soft = object.map((_, a) => {
    let sum = 0;
    for (let v = -2; v <= 2; v++) for (let u = -2; u <= 2; u++) sum += object[Math.min(object.length - 1, Math.max(0, a + v * width + u))];
    return Math.round(sum / 25);
  });
  await load('#load-mask', await writeMap('soft.png', soft, truth));
  assert.equal(await page.locator('#labels li').count(), 2);
  await visitor.compareWithCommand('docs/images/scene.png');
  const map = inBlocks(Array.from(data), width, height), colours = [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]];
  await load('#load-mask', await writeMap('indexed.png', map, truth, colours));
  assert.deepEqual((await page.evaluate(() => playground.labels.colours)), colours);
  await visitor.compareWithCommand('docs/images/scene.png');
  await load('#load-mask', await writeMap('numbers.png', map.map((label, a) => (a % 240 < 9 ? 255 : label)), truth));
  await visitor.compareWithCommand('docs/images/scene.png');
});

test('a mask of another size, or a photograph instead of one, is refused and nothing is lost', async () => {
  const before = await page.evaluate(() => playground.unary.name);
  await page.setInputFiles('#load-mask', await writeMap('small.png', new Uint8Array(600), { width: 30, height: 20 }));
  await visitor.says(/small\.png is 30 x 20, the picture 240 x 160/);
  await page.setInputFiles('#load-mask', 'docs/images/scene.png');
  await visitor.says(/scene\.png has \d+ colours; a mask has black and white/);
  assert.equal(await page.evaluate(() => playground.unary.name), before);
});

test('unaries that are smaller than the picture are enlarged as the command enlarges them', async () => {
  const { data, shape } = readNpy(join(scratch, 'unary.npy')), [height, width, labels] = shape, k = 4, small = new Float32Array(data.length / k / k);
  for (let y = 0; y < height / k; y++)
    for (let x = 0; x < width / k; x++) for (let i = 0; i < labels; i++) small[(y * width / k + x) * labels + i] = data[((k * y + 2) * width + k * x + 2) * labels + i];
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${height / k}, ${width / k}, ${labels}), }`.padEnd(117) + '\n', start = Buffer.alloc(10);
  start.write('\x93NUMPY\x01\x00', 'latin1');
  start.writeUInt16LE(head.length, 8);
  writeFileSync(join(scratch, 'small.npy'), Buffer.concat([start, Buffer.from(head, 'latin1'), Buffer.from(small.buffer)]));
  await page.selectOption('#unary-kind', 'energies');
  await load('#load-unary', join(scratch, 'small.npy'));
  await visitor.picture('small-unaries');
  await visitor.compareWithCommand('docs/images/scene.png');
  await page.selectOption('#unary-kind', 'auto');
  assert.equal(await page.locator('#labels li').count(), 5);
  await page.click('#drop-unary');
  assert.deepEqual(await page.evaluate(() => playground.labels.all.map(({ colour }) => colour)), ['#0072b2', '#e69f00']); /* as before the files */
});

/* ---- TIFF ----------------------------------------------------------------------------------- */

/* Codes of 9 to 12 bits, as libtiff writes them. */
function lzw(bytes) {
  const out = [];
  let held = 0, bits = 0, size = 9, table = new Map(), next = 258, prefix = '';
  const put = (code) => {
    held = (held << size | code) >>> 0;
    for (bits += size; bits >= 8; bits -= 8) out.push(held >>> bits - 8 & 255);
    held &= (1 << bits) - 1;
  };
  const codeOf = (text) => (text.length === 1 ? text.charCodeAt(0) : table.get(text));
  put(256);
  for (const byte of bytes) {
    const longer = prefix + String.fromCharCode(byte);
    if (longer.length === 1 || table.has(longer)) {
      prefix = longer;
      continue;
    }
    put(codeOf(prefix));
    table.set(longer, next++);
    if (next === 4095) {
      put(256);
      [size, table, next] = [9, new Map(), 258];
    } else if (next === 1 << size) size++;
    prefix = String.fromCharCode(byte);
  }
  put(codeOf(prefix));
  put(257);
  if (bits) out.push(held << 8 - bits & 255);
  return Buffer.from(out);
}

const packBits = (bytes) => Buffer.concat(Array.from({ length: Math.ceil(bytes.length / 100) }, (_, i) => {
  const part = bytes.subarray(100 * i, 100 * i + 100);
  return Buffer.concat([Buffer.from([part.length - 1]), part]);
}));
const PACKERS = { 1: (bytes) => bytes, 5: lzw, 8: deflateSync, 32773: packBits };

/* A little-endian TIFF of one strip. */
function tiff({ width, height, samples, bits, format = 1, compression = 1, predictor = 1, data }) {
  const strip = PACKERS[compression](data), entries = [[256, width], [257, height], [258, bits], [259, compression], [262, samples === 3 ? 2 : 1], [273, 8], [277, samples],
    [278, height], [279, strip.length], [317, predictor], [339, format]];
  const head = Buffer.alloc(8), directory = Buffer.alloc(2 + 12 * entries.length + 4);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(8 + strip.length, 4);
  directory.writeUInt16LE(entries.length, 0);
  entries.forEach(([tag, value], i) => {
    directory.writeUInt16LE(tag, 2 + 12 * i);
    directory.writeUInt16LE(4, 4 + 12 * i);
    directory.writeUInt32LE(1, 6 + 12 * i);
    directory.writeUInt32LE(value, 10 + 12 * i);
  });
  return Buffer.concat([head, strip, directory]);
}

const shownPixels = () => page.evaluate(() => [...playground.picture.sizes.full.rgba]);

test('TIFF: compressions, predictors, 12 bits in 16, floats; broken ones are refused', async () => {
  const { data, width, height, channels } = scene();
  const rgb = Buffer.from(Array.from({ length: 3 * width * height }, (_, i) => data[channels * Math.floor(i / 3) + i % 3]));
  const differences = Buffer.from(rgb.map((value, i) => (i % (3 * width) < 3 ? value : value - rgb[i - 3])));
  const expected = Array.from({ length: 4 * width * height }, (_, i) => (i % 4 === 3 ? 255 : rgb[3 * Math.floor(i / 4) + i % 4]));
  const base = { width, height, samples: 3, bits: 8 };
  for (const [name, file] of [['plain', { ...base, data: rgb }], ['lzw', { ...base, compression: 5, data: rgb }], ['deflate', { ...base, compression: 8, predictor: 2, data: differences }],
    ['packbits', { ...base, compression: 32773, data: rgb }]]) {
    await visitor.drop(`${name}.tif`, tiff(file));
    await page.waitForFunction((wanted) => playground.picture.name === wanted, `${name}.tif`);
    assert.deepEqual(await shownPixels(), expected, name);
  }
  const grey = Uint16Array.from({ length: width * height }, (_, a) => 16 * rgb[3 * a + 1]), floats = Float32Array.from(grey, (value) => value / 4095);
  const range = [Math.min(...grey), Math.max(...grey)];
  await visitor.drop('deep.tif', tiff({ ...base, samples: 1, bits: 16, compression: 5, data: Buffer.from(grey.buffer) }));
  await visitor.says(/Its numbers are shown from \d+ \(black\) to \d+ \(white\)/);
  const deep = await shownPixels();
  assert.ok(Math.max(...deep.filter((_, i) => i % 4 === 0)) === 255 && range[1] < 4096);
  await visitor.picture('tiff');
  await visitor.drop('float.tif', tiff({ ...base, samples: 1, bits: 32, format: 3, compression: 8, data: Buffer.from(floats.buffer) }));
  await page.waitForFunction(() => playground.picture.name === 'float.tif');
  assert.ok((await shownPixels()).every((value, i) => i % 4 === 3 || Math.abs(value - 255 * floats[Math.floor(i / 4)]) <= 1));
  for (const bytes of [tiff({ ...base, data: rgb }).subarray(0, 5000), Buffer.from('II*\0\xff\xff\xff\xff', 'latin1'), tiff({ ...base, compression: 5, data: rgb }).fill(0xff, 100, 400)]) {
    await visitor.drop('broken.tif', bytes);
    await visitor.says(/broken\.tif cannot be shown: it is a TIFF that cannot be read/);
    assert.equal(await page.evaluate(() => playground.picture.name), 'float.tif');
    await page.evaluate(() => { document.getElementById('message').textContent = ''; });
  }
});

/* ---- large photographs ---------------------------------------------------------------------- */

/* Exif data with an orientation (tag 0x112), as the second segment of a JPEG. */
function withOrientation(jpeg, orientation) {
  const tiffHeader = Buffer.from([0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]);
  const body = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiffHeader]);
  return Buffer.concat([jpeg.subarray(0, 2), Buffer.from([0xff, 0xe1, 0, body.length + 2]), body, jpeg.subarray(2)]);
}

test('a photograph that was held upright is upright, as in the command', async () => {
  const stored = await page.evaluate(async (base64) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(image.height, image.width), context = canvas.getContext('2d');
    context.setTransform(0, -1, 1, 0, 0, image.width); // orientation 6: turned back clockwise
    context.drawImage(image, 0, 0);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/jpeg', quality: 1 })).arrayBuffer());
    return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ''));
  }, readFileSync('docs/images/scene.png').toString('base64'));
  const path = join(scratch, 'held.jpg');
  writeFileSync(path, withOrientation(Buffer.from(stored, 'base64'), 6));
  await page.setInputFiles('#open', path);
  await page.waitForFunction(() => playground.picture.name === 'held.jpg');
  const { width, height } = scene();
  assert.deepEqual(await page.evaluate(() => [playground.picture.width, playground.picture.height]), [width, height]);
  await visitor.choose(1);
  await drag(page, [[0.17 * width, 0.5 * height], [0.36 * width, 0.63 * height]]);
  await visitor.choose(0);
  await drag(page, [[0.07 * width, 0.1 * height], [0.93 * width, 0.1 * height]]);
  await settled(page);
  await visitor.picture('rotated');
  const settings = await visitor.save('#save-json'), mask = readPng(await visitor.save('#save-mask'));
  await visitor.save('#save-strokes');
  const { labels, text } = visitor.command(path, settings);
  assert.match(text, /turned by 90 degrees clockwise, as its EXIF orientation says/);
  const different = labels.reduce((sum, label, a) => sum + (label === mask.data[a] ? 0 : 1), 0);
  assert.ok(different < 0.01 * labels.length, `${different} of ${labels.length}: decoders of JPEG differ by less`);
});

test('a large photograph: a draft first, and edges of the saved mask at full size', async () => {
  const [width, height] = [2400, 1600], isInside = (x, y) => (x - 1203) ** 2 / 700 ** 2 + (y - 790) ** 2 / 450 ** 2 + 0.12 * Math.sin(x / 60) < 1;
  const rgb = Buffer.alloc(3 * width * height);
  for (let y = 0, a = 0; y < height; y++)
    for (let x = 0; x < width; x++, a += 3) {
      const noise = (x * 7919 + y * 104729) % 17;
      rgb.set(isInside(x, y) ? [190 + noise, 90 + noise, 40] : [60 + noise, 110 + noise, 150], a);
    }
  const path = join(scratch, 'large.tif');
  writeFileSync(path, tiff({ width, height, samples: 3, bits: 8, compression: 8, data: rgb }));
  await page.setInputFiles('#open', path);
  await visitor.says(/It has 2400 x 1600 pixels and is worked on at 1200 x 800/);
  const sizes = page.evaluate(() => new Promise((done) => {
    const seen = [], look = () => {
      const size = playground.result?.size;
      if (size && seen.at(-1) !== size) seen.push(size);
      if (size === 'full' && !playground.job) done(seen);
      else requestAnimationFrame(look);
    };
    look();
  }));
  await visitor.choose(1);
  await drag(page, [[900, 800], [1500, 800]]);
  await visitor.choose(0);
  await drag(page, [[200, 200], [2200, 180]]);
  assert.ok((await sizes).includes('draft'), `${await sizes}`);
  await settled(page);
  const mask = readPng(await visitor.save('#save-mask')), reduced = await labelsOf();
  await visitor.picture('large');
  assert.deepEqual([mask.width, mask.height], [width, height]);
  const wrong = (labelAt) => {
    let count = 0;
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (labelAt(x, y) !== (isInside(x, y) ? 1 : 0)) count++;
    return count;
  };
  const refined = wrong((x, y) => mask.data[y * width + x]), nearest = wrong((x, y) => reduced[(y >> 1) * 1200 + (x >> 1)]);
  assert.ok(refined < nearest / 2, `${refined} pixels are wrong, ${nearest} by nearest neighbour`);
  /* The command repeats it from the probabilities, without tiles. */
  const files = [];
  page.on('download', (file) => files.push(file));
  await page.click('#save-json');
  while (files.length < 2) await page.waitForEvent('download');
  const saved = await Promise.all(files.map((file) => visitor.keep(file)));
  const { labels } = visitor.command(path, saved.find((name) => name.endsWith('.json')));
  const different = labels.reduce((sum, label, a) => sum + (label === mask.data[a] ? 0 : 1), 0);
  assert.ok(different <= 1e-4 * labels.length, `${different} labels are not the command's`);
});

test('nothing went wrong in the console', () => assert.deepEqual(errors, []));
