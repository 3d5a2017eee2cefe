/* The page in Chromium, as a visitor uses it. Run from the root of the repository, after script/build and script/build-web:
 *   node --test tests/web/page.test.mjs     (SCREENSHOTS=DIRECTORY keeps pictures of the page) */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { deflateSync, crc32 } from 'node:zlib';
import { drag, launch, open, serve, settled } from './browser.mjs';
import { Visitor } from './visitor.mjs';

const folder = 'build-web/page';
const photograph = '../shared/data/scribbles/106024.png';
const scratch = mkdtempSync(join(tmpdir(), 'dcrf-page-'));
let server, browser, page, requests, errors;

before(async () => {
  server = await serve();
  browser = await launch();
  ({ page, requests, errors } = await open(browser.context, server.url));
});
after(async () => {
  await browser?.close();
  server?.stop();
  rmSync(scratch, { recursive: true });
});

/* The page of the moment: one test visits another one. */
const visitor = new Visitor(() => page, scratch);
const message = () => visitor.message();
const picture = (name) => visitor.picture(name);
const says = (pattern) => visitor.says(pattern);
const choose = (label) => visitor.choose(label);
const drop = (name, bytes) => visitor.drop(name, bytes);
const compareWithCommand = (image) => visitor.compareWithCommand(image);
const strokeCount = () => visitor.strokeCount();

test('strokes become the mask that the command finds', async () => {
  assert.match(await message(), /Paint a stroke for object/); /* what is looked for comes first */
  await drag(page, [[40, 80], [80, 100]]);
  assert.match(await message(), /another label/);
  await choose(0);
  await drag(page, [[15, 15], [120, 25], [225, 15]]);
  await settled(page);
  assert.match(await message(), /Mask found in \d+ ms/);
  assert.equal(await strokeCount(), 2);
  await picture('overlay');
  await compareWithCommand('docs/images/scene.png');
});

test('a third label, names, undo, redo, erasing', async () => {
  await page.click('#add-label');
  await page.fill('#labels input[type=text] >> nth=2', 'hill');
  await drag(page, [[30, 145], [60, 150]]);
  await drag(page, [[170, 140], [230, 150]]);
  await settled(page);
  const labels = await page.evaluate(() => [...new Set(playground.result.labels)].sort());
  assert.deepEqual(labels, [0, 1, 2]);
  await page.click('#undo');
  assert.equal(await strokeCount(), 3);
  await page.keyboard.press('y');
  assert.equal(await strokeCount(), 4);
  await page.check('#erase');
  await drag(page, [[170, 140], [230, 150]]);
  await settled(page);
  await compareWithCommand('docs/images/scene.png');
});

test('keys and touches paint too', async () => {
  const before = await strokeCount();
  await page.focus('#picture');
  await page.keyboard.press('1');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.down(' ');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.up(' ');
  assert.equal(await strokeCount(), before + 1);
  await page.keyboard.press('2');
  const box = await page.locator('#picture').boundingBox();
  await page.touchscreen.tap(box.x + 0.3 * box.width, box.y + 0.55 * box.height);
  assert.equal(await strokeCount(), before + 2);
  assert.deepEqual(await page.evaluate(() => playground.strokes.done.slice(-2).map(({ label }) => label)), [0, 1]);
  await page.keyboard.press('z');
  await page.keyboard.press('z');
  await settled(page);
});

test('every view shows something else', async () => {
  const seen = new Set();
  for (const view of ['overlay', 'mask', 'boundaries', 'confidence', 'proven', 'beside']) {
    await page.check(`input[name=view][value=${view}]`, { force: true });
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    seen.add(await page.evaluate(() => ['picture', 'result'].map((id) => document.getElementById(id).toDataURL()).join()));
    await picture(`view-${view}`);
  }
  assert.equal(seen.size, 6);
  await page.check('input[name=view][value=overlay]', { force: true });
});

test('method, strength and cliques act at once', async () => {
  const results = [];
  for (const [id, value] of [['method', 'qp'], ['method', 'mf'], ['strength', '2'], ['strength', '0']]) {
    if (id === 'method') await page.check(`input[name=method][value=${value}]`, { force: true });
    else await page.locator(`#${id}`).fill(value);
    await settled(page);
    results.push(await page.evaluate(() => [playground.result.method, playground.result.strengthNats]));
  }
  assert.deepEqual(results.map(([method]) => method), ['qp', 'mf', 'mf', 'mf']);
  assert.ok(Math.abs(results[2][1] / results[3][1] - 4) < 1e-9);
  await page.selectOption('#cliques', 'slic');
  await settled(page);
  assert.ok(await page.evaluate(() => playground.result.cliqueCount > 10));
  await compareWithCommand('docs/images/scene.png');
  await page.selectOption('#cliques', 'none');
  await settled(page);
});

test('a proof has a bound below the energy, and a newer stroke cancels it', async () => {
  await page.click('#prove');
  await page.waitForFunction(() => playground.trace.filter(({ lowerBound }) => Number.isFinite(lowerBound)).length > 3);
  if (await page.isEnabled('#stop')) await page.click('#stop'); /* takes what there is */
  await page.waitForFunction(() => playground.result?.isProof);
  const { energy, bound } = await page.evaluate(() => ({ energy: playground.result.energy.total, bound: playground.result.lowerBound }));
  assert.ok(bound <= energy && energy - bound < 0.01 * Math.abs(energy), `${bound} <= ${energy}`);
  assert.match(await message(), /no labelling is better by more than/);
  assert.ok(await page.locator('#plot path.bound').count() === 1);
  assert.ok(await page.evaluate(() => playground.result.provenShare) > 0.5);
  await picture('proof');
  await page.click('#prove');
  await choose(0);
  await drag(page, [[20, 60], [30, 62]]);
  await settled(page);
  assert.equal(await page.evaluate(() => Boolean(playground.result.isProof)), false);
});

test('small screens and the dark', async () => {
  for (const [width, height] of [[360, 740], [820, 1100], [1500, 900]]) {
    await page.setViewportSize({ width, height });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide at ${width}`);
    await picture(`width-${width}`);
  }
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.notEqual(await ground(), light);
  await page.setViewportSize({ width: 360, height: 740 });
  await picture('dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('everything has a name for those who do not see it', async () => {
  const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input, select, canvas:not([aria-hidden])')]
    .filter((e) => !(e.getAttribute('aria-label') || e.textContent || [...e.labels ?? []].map((l) => l.textContent).join('')).trim())
    .map((e) => e.outerHTML));
  assert.deepEqual(nameless, []);
});

test('a broken picture is refused, and nothing is lost', async () => {
  const before = await strokeCount();
  await drop('broken.png', readFileSync('docs/images/scene.png').subarray(0, 60));
  await says(/broken\.png cannot be shown/);
  await drop('broken.npy', Buffer.from('no array'));
  await says(/not a \.npy/);
  assert.equal(await strokeCount(), before);
  assert.equal(await page.evaluate(() => playground.picture.name), 'scene.png');
});

test('a worker that crashes: a message, the strokes stay, and the next one works', async () => {
  const before = await strokeCount();
  await page.evaluate(() => playground.client.worker.postMessage({ type: 'crash' }));
  await says(/broke down/);
  assert.equal(await strokeCount(), before);
  await choose(0);
  await drag(page, [[60, 20], [70, 20]]);
  await settled(page);
  assert.equal(await strokeCount(), before + 1);
});

test('unaries from a file', async () => {
  execFileSync('build/examples/scene', [scratch]);
  await drop('unary.npy', readFileSync(join(scratch, 'unary.npy')));
  await page.waitForFunction(() => playground.unary);
  await settled(page);
  assert.equal(await page.locator('#labels li').count(), 5);
  await page.setInputFiles('#load-mask', join(scratch, 'truth.png'));
  await page.waitForFunction(() => playground.unary?.name === 'truth.png');
  await settled(page);
  const share = await page.evaluate(() => playground.result.labels.reduce((sum, label) => sum + (label === 2 ? 1 : 0), 0) / playground.result.labels.length);
  assert.ok(share > 0.3 && share < 0.7, `${share} of the scene is sky`);
  await picture('unaries');
  /* Negative numbers may be logits or energies: the page asks, as the command does. */
  const negative = readFileSync(join(scratch, 'unary.npy'));
  const start = 10 + negative.readUInt16LE(8), numbers = new Float32Array(negative.buffer.slice(negative.byteOffset + start));
  numbers.forEach((x, i) => negative.writeFloatLE(x - 5, start + 4 * i));
  await drop('negative.npy', negative);
  await page.waitForFunction(() => document.body.textContent.includes('It cannot be told what the numbers are'));
  await page.selectOption('#unary-kind', 'energies');
  await drop('negative.npy', negative);
  await page.waitForFunction(() => playground.unary?.name === 'negative.npy');
  await page.selectOption('#unary-kind', 'auto');
  await page.click('#drop-unary');
});

/* A grey PNG of one colour, as large as it is boring. */
function hugePng(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]), size = Buffer.alloc(4), sum = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height), { level: 1 })), chunk('IEND', Buffer.alloc(0))]);
}

test('a hundred megapixels are worked on at a size that fits', async () => {
  await drop('huge.png', hugePng(10000, 10000));
  await says(/huge\.png cannot be shown|worked on at/);
  assert.match(await message(), /10000 x 10000 pixels and is worked on at \d+ x \d+|too large/);
});

test('memory that runs out: a message, and the strokes stay', async () => {
  await page.evaluate(() => playground.client.worker.postMessage({ type: 'exhaust' }));
  await choose(0);
  await drag(page, [[1000, 1000], [9000, 2000]]);
  await choose(1);
  await drag(page, [[2000, 9000]]); /* at once, without a preview */
  await says(/Out of memory/);
  assert.equal(await strokeCount(), 2);
});

test('a dropped photograph', { skip: !existsSync(photograph) && 'no photograph' }, async () => {
  await drop('photo.png', readFileSync(photograph));
  await page.waitForFunction(() => playground.picture.name === 'photo.png');
  assert.equal(await page.locator('#labels li').count() >= 2, true);
  await choose(0);
  await drag(page, [[20, 20], [240, 15], [460, 30], [460, 300]]);
  await choose(1);
  await drag(page, [[200, 160], [280, 200]]);
  await settled(page);
  await picture('photograph');
  await compareWithCommand(photograph);
});

test('one thread, and no vectors: slower, and the same mask', async () => {
  const plain = await serve('--no-isolation');
  const old = await launch(undefined, ['--js-flags=--no-enable-sse4-1']); /* so V8 has no wasm vectors */
  const first = page;
  try {
    ({ page } = await open(old.context, plain.url));
    assert.equal(await page.evaluate(() => crossOriginIsolated), false);
    assert.match(await page.textContent('#about'), /no WebAssembly vectors/);
    await drag(page, [[40, 80], [80, 100]]);
    await choose(0);
    await drag(page, [[15, 15], [225, 15]]);
    await settled(page);
    await compareWithCommand('docs/images/scene.png');
  } finally {
    page = first;
    await old.close();
    plain.stop();
  }
});

test('no request leaves the page, and it works without a network', async () => {
  assert.ok(requests.length > 10);
  assert.deepEqual(requests.filter((address) => !address.startsWith(server.url) && !address.startsWith('blob:')), []);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await browser.context.setOffline(true);
  server.stop();
  await page.reload();
  await page.waitForFunction(() => globalThis.playground?.isReady && globalThis.playground.picture);
  await browser.context.setOffline(false);
  assert.deepEqual(errors, []);
});

test('script and module weigh less than 725 kB', () => {
  const bytes = readdirSync(folder).filter((name) => /\.(js|html|css)$/.test(name)).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  const modules = readdirSync(folder).filter((name) => name.endsWith('.wasm')).map((name) => statSync(join(folder, name)).size);
  assert.ok(bytes + Math.max(...modules) < 725_000, `${bytes} + ${modules}`);
});
