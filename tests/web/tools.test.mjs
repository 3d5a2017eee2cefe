/* The tools of the page in Chromium: magnifying, undoing, keeping, loading and saving. Run from the root of the repository, after script/build and
 * script/build-web:   node --test tests/web/tools.test.mjs     (SCREENSHOTS=DIRECTORY keeps pictures of the page) */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { drag, launch, open, serve, settled } from './browser.mjs';
import { readPng } from './read.mjs';
import { Visitor } from './visitor.mjs';

const scratch = mkdtempSync(join(tmpdir(), 'dcrf-tools-'));
let server, browser, page, errors;
const visitor = new Visitor(() => page, scratch);

before(async () => {
  server = await serve();
  browser = await launch();
  ({ page, errors } = await open(browser.context, server.url));
});
after(async () => {
  await browser?.close();
  server?.stop();
  rmSync(scratch, { recursive: true });
});

const frame = () => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
const view = () => page.evaluate(() => { const { zoom, x, y } = playground.viewport; return { zoom, x, y }; });
const maskOfPage = () => page.evaluate(() => [...playground.result.labels]);

async function paintScene() {
  await visitor.choose(1);
  await drag(page, [[40, 80], [80, 100]]);
  await visitor.choose(0);
  await drag(page, [[15, 15], [120, 25], [225, 15]]);
  await settled(page);
}

test('the object is painted first, and methods are buttons', async () => {
  assert.equal(await page.evaluate(() => playground.labels.currentName), 'object');
  assert.match(await visitor.message(), /Paint a stroke for object/);
  for (const [value, hint] of [['lp', /lower bound/], ['qp', /quadratic/], ['mf', /Fast/]]) {
    await page.locator(`#methods label:has(input[value=${value}])`).click();
    assert.match(await page.textContent('#method-hint'), hint);
  }
});

test('the wheel magnifies where the pointer is, and strokes stay where they are painted', async () => {
  const box = await page.locator('#picture').boundingBox();
  const place = [box.x + 0.25 * box.width, box.y + 0.75 * box.height];
  await page.mouse.move(...place);
  await page.mouse.wheel(0, -800);
  await page.waitForFunction(() => playground.viewport.zoom > 3.9);
  const { zoom, x, y } = await view();
  assert.ok(Math.abs(x + 0.25 * 240 / zoom - 0.25 * 240) < 1 && Math.abs(y + 0.75 * 160 / zoom - 0.75 * 160) < 1);
  assert.equal(await page.textContent('#zoom-value'), '400 %');
  await visitor.picture('zoomed');
  await page.mouse.down();
  await page.mouse.up();
  const [[px, py]] = await page.evaluate(() => playground.strokes.done[0].points);
  assert.ok(Math.abs(px - 60) < 1 && Math.abs(py - 120) < 1, `${px}, ${py}`);
  await page.keyboard.press('z');
  /* The other buttons move the picture, and paint nothing. */
  await page.mouse.down({ button: 'right' });
  await page.mouse.move(place[0] + 50, place[1] - 30, { steps: 3 });
  await page.mouse.up({ button: 'right' });
  const moved = await view();
  assert.ok(Math.abs(x - moved.x - 50 / box.width * 240 / zoom) < 0.5 && Math.abs(moved.y - y - 30 / box.height * 160 / zoom) < 0.5);
  assert.equal(await visitor.strokeCount(), 0);
  await page.keyboard.press('0');
  assert.deepEqual(await view(), { zoom: 1, x: 0, y: 0 });
  await page.click('#zoom-in');
  assert.equal((await view()).zoom, 1.5);
  await page.click('#zoom-fit');
});

test('two fingers magnify and move, and what the first painted is forgotten', async () => {
  const session = await page.context().newCDPSession(page), box = await page.locator('#picture').boundingBox();
  const touch = (type, ...points) => session.send('Input.dispatchTouchEvent', { type,
    touchPoints: points.map(([fx, fy], id) => ({ x: box.x + fx * box.width, y: box.y + fy * box.height, id })) });
  await touch('touchStart', [0.4, 0.5]);
  await touch('touchMove', [0.42, 0.5]);
  assert.equal(await visitor.strokeCount(), 1);
  await touch('touchStart', [0.42, 0.5], [0.6, 0.5]);
  for (let i = 1; i <= 6; i++) await touch('touchMove', [0.42 - 0.03 * i, 0.5], [0.6 + 0.03 * i, 0.5]);
  await touch('touchEnd');
  assert.equal(await visitor.strokeCount(), 0);
  assert.ok((await view()).zoom > 2);
  await page.keyboard.press('0');
});

test('the brush has an outline as large as it paints', async () => {
  const row = () => page.evaluate(() => {
    const canvas = document.getElementById('picture');
    return [...canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data];
  });
  await page.mouse.move(5, 5);
  await frame();
  const without = await row(), box = await page.locator('#picture').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await frame();
  const changed = (await row()).flatMap((value, i) => (value === without[i] ? [] : [Math.floor(i / 4)]));
  const width = (changed.at(-1) - changed[0]) / box.width * 240; /* of the ring, whose line is 3 pixels of the screen */
  assert.ok(Math.abs(width - 9) < 1.5, `${width} is not 9 pixels wide`);
  await page.mouse.move(5, 5);
  await frame();
  assert.deepEqual(await row(), without);
});

test('Clear can be taken back; with one label there is no mask', async () => {
  await paintScene();
  const mask = await maskOfPage();
  await page.click('#clear');
  assert.equal(await visitor.strokeCount(), 0);
  assert.equal(await page.evaluate(() => playground.result), undefined);
  assert.ok(await page.isDisabled('#save-mask'));
  await page.click('#undo');
  assert.equal(await visitor.strokeCount(), 2);
  await settled(page);
  assert.deepEqual(await maskOfPage(), mask);
  await page.click('#undo');
  await page.waitForFunction(() => !playground.result);
  for (const button of ['mask', 'cutout', 'overlay', 'json']) assert.ok(await page.isDisabled(`#save-${button}`), button);
  await page.click('#redo');
  await settled(page);
  /* Erasing a label leaves one, too. */
  await page.check('#erase');
  await page.locator('#size').fill('20');
  await drag(page, [[38, 78], [60, 90], [84, 104]]);
  await page.waitForFunction(() => !playground.result);
  assert.match(await visitor.message(), /choose another label/);
  await page.locator('#size').fill('9');
  await page.click('#undo');
  await settled(page);
});

test('a reload loses nothing', async () => {
  await page.fill('#labels input[type=text] >> nth=1', 'house');
  await page.locator('#strength').fill('1');
  await page.locator('#opacity').fill('30');
  await settled(page);
  await page.click('#undo');
  await page.click('#redo');
  await settled(page);
  const mask = await maskOfPage();
  await page.evaluate(() => playground.autosave.now());
  await page.reload();
  await page.waitForFunction(() => globalThis.playground?.isReady && playground.picture);
  await settled(page);
  assert.equal(await page.evaluate(() => playground.picture.name), 'scene.png');
  assert.deepEqual(await maskOfPage(), mask);
  assert.equal(await page.inputValue('#labels input[type=text] >> nth=1'), 'house');
  assert.deepEqual(await Promise.all(['#strength', '#opacity'].map((id) => page.inputValue(id))), ['1', '30']);
  await page.click('#undo');
  assert.equal(await visitor.strokeCount(), 1);
  await page.click('#redo');
  await page.locator('#strength').fill('0');
  await settled(page);
});

test('saved strokes can be loaded', async () => {
  const mask = await maskOfPage(), strokes = await visitor.save('#save-strokes');
  await page.click('#clear');
  await page.setInputFiles('#load-strokes', strokes);
  await settled(page);
  assert.deepEqual(await maskOfPage(), mask);
  await visitor.compareWithCommand('docs/images/scene.png');
  await page.click('#undo');
  assert.equal(await visitor.strokeCount(), 0);
  await page.click('#undo');
  assert.equal(await visitor.strokeCount(), 2);
  await settled(page);
  await visitor.drop('other-strokes.png', readFileSync('docs/images/scene.png').subarray(0, 50));
  await visitor.says(/other-strokes\.png cannot be read/);
  assert.equal(await visitor.strokeCount(), 2);
});

test('a cut-out is transparent around its label, an overlay has its colours', async () => {
  await visitor.choose(0);
  assert.equal(await page.textContent('#save-cutout'), 'Cut-out of house'); /* a background is not what people cut out */
  const mask = await maskOfPage(), cut = readPng(await visitor.save('#save-cutout')), laid = readPng(await visitor.save('#save-overlay'));
  const photograph = readPng('docs/images/scene.png'), colours = await page.evaluate(() => playground.labels.colours);
  assert.equal(cut.channels, 4);
  let [inside, outside, soft] = [0, 0, 0];
  mask.forEach((label, a) => {
    const alpha = cut.data[4 * a + 3], around = [-241, -240, -239, -1, 1, 239, 240, 241].map((d) => mask[a + d] ?? label);
    if (around.every((one) => one === label)) {
      assert.equal(alpha, label === 1 ? 255 : 0);
      if (label === 1) inside++;
      else outside++;
    } else if (alpha > 0 && alpha < 255) soft++;
    for (let c = 0; c < 3; c++) {
      const under = photograph.data[photograph.channels * a + c], expected = under + 0.3 * (colours[label][c] - under);
      assert.ok(Math.abs(laid.data[laid.channels * a + c] - expected) <= 1);
    }
  });
  assert.ok(inside > 1000 && outside > 1000 && soft > 100, `${inside} inside, ${outside} outside, ${soft} between`);
});

test('opacity is as strong as is chosen', async () => {
  await page.mouse.move(5, 5);
  await settled(page);
  const pixel = async (value) => {
    await page.locator('#opacity').fill(value);
    await frame();
    return page.evaluate(() => {
      const canvas = document.getElementById('picture');
      return [...canvas.getContext('2d').getImageData(200.5 / 240 * canvas.width, 100.5 / 160 * canvas.height, 1, 1).data];
    });
  };
  const [under, between, over] = [await pixel('0'), await pixel('50'), await pixel('100')];
  const colour = await page.evaluate(() => playground.labels.colours[playground.result.labels[100 * 240 + 200]]);
  assert.deepEqual(over, [...colour, 255]);
  for (let c = 0; c < 3; c++) assert.ok(Math.abs(between[c] - (under[c] + over[c]) / 2) <= 2 && under[c] !== over[c]);
  await page.locator('#opacity').fill('55');
});

test('? shows the keys', async () => {
  await page.keyboard.press('?');
  assert.ok(await page.isVisible('#keys'));
  await visitor.picture('keys', { fullPage: false });
  await page.keyboard.press('e'); /* nothing happens behind it */
  assert.equal(await page.isChecked('#erase'), false);
  await page.keyboard.press('Escape');
  assert.equal(await page.isVisible('#keys'), false);
  await page.click('#help');
  await page.click('#keys button');
  assert.equal(await page.isVisible('#keys'), false);
});

test('a proof says how long it may take; lines of the plot run forward', async () => {
  await page.click('#prove');
  await visitor.says(/at most \d+ s left/);
  assert.ok(await page.isVisible('#progress'));
  const first = Number((await visitor.message()).match(/at most (\d+) s/)[1]);
  assert.ok(first <= 40, `${first} s`);
  await visitor.picture('proving');
  await page.waitForFunction((before) => Number(document.getElementById('message').textContent.match(/at most (\d+) s/)?.[1] ?? 0) < before, first);
  await page.waitForFunction(() => playground.trace.filter(({ lowerBound }) => Number.isFinite(lowerBound)).length > 3);
  if (await page.isEnabled('#stop')) await page.click('#stop');
  await page.waitForFunction(() => playground.result?.isProof);
  assert.equal(await page.isVisible('#progress'), false);
  /* The second run begins its own lines. */
  await page.locator('#strength').fill('0.5');
  await settled(page);
  await page.locator('#strength').fill('0');
  await settled(page);
  const backward = () => page.evaluate(() => [...document.querySelectorAll('#plot path:not(.axis)')].flatMap((path) => {
    const xs = [...path.getAttribute('d').matchAll(/[ML]([\d.]+)/g)].map((match) => Number(match[1]));
    return xs.filter((x, i) => i > 0 && x < xs[i - 1]);
  }).length);
  assert.equal(await backward(), 0);
  await page.evaluate(async () => {
    const { drawPlot } = await import('./plot.js');
    const moments = (shift) => [0, 1, 2, 3].map((time) => ({ time, bestEnergy: 10 - time + shift, lowerBound: time }));
    drawPlot(document.getElementById('plot'), [...moments(0), ...moments(1)]);
  });
  assert.equal(await backward(), 0);
});

test('examples are drawn, each its own', async () => {
  const seen = [];
  for (const name of ['fruit', 'harbour', 'butterfly', 'scene']) {
    await page.click(`#example-${name}`);
    await page.waitForFunction((wanted) => playground.picture.name === wanted, `${name}.png`);
    await frame();
    await visitor.picture(`example-${name}`);
    seen.push(await page.evaluate(() => {
      const context = new OffscreenCanvas(8, 8).getContext('2d');
      context.drawImage(playground.picture.bitmap, 0, 0, 8, 8);
      return [...context.getImageData(0, 0, 8, 8).data];
    }));
  }
  const apart = (a, b) => a.reduce((sum, value, i) => sum + Math.abs(value - b[i]), 0) / a.length;
  seen.forEach((a, i) => seen.slice(i + 1).forEach((b) => assert.ok(apart(a, b) > 10, `${apart(a, b)}`)));
});

test('on a phone labels, eraser and undo are in reach while painting', async () => {
  await page.setViewportSize({ width: 390, height: 700 });
  await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(300, 600), context = canvas.getContext('2d');
    context.fillStyle = '#3a6';
    context.fillRect(0, 0, 300, 600);
    context.fillStyle = '#e94';
    context.fillRect(80, 200, 140, 200);
    const transfer = new DataTransfer();
    transfer.items.add(new File([await canvas.convertToBlob()], 'tall.png'));
    document.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
  });
  await page.waitForFunction(() => playground.picture.name === 'tall.png');
  await frame();
  for (const top of [0, 250]) {
    await page.evaluate((y) => scrollTo(0, y), top);
    const box = await page.locator('#quick').boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 701, `${JSON.stringify(box)} at ${top}`);
  }
  await page.evaluate(() => scrollTo(0, 0));
  const canvas = await page.locator('#picture').boundingBox();
  await page.touchscreen.tap(canvas.x + canvas.width / 2, canvas.y + canvas.height / 2);
  await page.locator('#chips button').nth(0).tap();
  assert.equal(await page.evaluate(() => playground.labels.current), 0);
  await page.touchscreen.tap(canvas.x + 20, canvas.y + 60);
  await settled(page);
  await visitor.picture('phone', { fullPage: false });
  await page.locator('#quick-undo').tap();
  assert.equal(await visitor.strokeCount(), 1);
  await page.locator('#quick-erase').tap();
  assert.ok(await page.isChecked('#erase'));
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('nothing went wrong in the console', () => assert.deepEqual(errors, []));
