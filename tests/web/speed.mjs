/* How long a stroke takes in Chromium: node tests/web/speed.mjs PHOTOGRAPH STROKES [simd|threads|plain]
 * STROKES is a grey PNG of labels, 255 elsewhere. Prints the median and the best of 15 strokes, in
 * milliseconds: the strokes' own mask, mean field on its model, polishing, and all of it. */
import { loadavg } from 'node:os';
import { launch, open, serve } from './browser.mjs';
import { readPng } from './read.mjs';

const [photograph, strokesFile, variant = 'simd'] = process.argv.slice(2);
const server = await serve();
const browser = await launch();
try {
  const { page } = await open(browser.context, server.url);
  const { data, width, height } = readPng(photograph), strokes = readPng(strokesFile).data;
  const figures = await page.evaluate(async ({ image, map, variant }) => {
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const strokes = bytes(map), rows = [];
    const worker = new Worker('worker.js', { type: 'module' });
    const answer = (type) => new Promise((done) => { worker.onmessage = ({ data: message }) => message.type === type && done(message); });
    worker.postMessage({ type: 'hello', variant });
    await answer('ready');
    worker.postMessage({ type: 'picture', sizes: { full: { ...image, rgba: bytes(image.data) } } });
    for (let id = 0; id < 17; id++) {
      strokes[1000 * id] = id % 2;
      worker.postMessage({ type: 'solve', id, size: 'full', labels: 2, strokes, strength: 1, method: 'mf', cliques: 'none' });
      const { scribbleMs, times, milliseconds } = await answer('result');
      rows.push({ strokes: scribbleMs, 'mean field': times.setup + times.solve, polishing: times.finish, all: milliseconds });
    }
    return rows;
  }, { image: { data: Buffer.from(data).toString('base64'), width, height }, map: Buffer.from(strokes).toString('base64'), variant });
  const rows = figures.slice(2);
  console.log(`${width} x ${height}, 2 labels, ${variant}, load ${loadavg()[0].toFixed(1)}`);
  for (const name of Object.keys(rows[0])) {
    const sorted = rows.map((row) => row[name]).sort((a, b) => a - b);
    console.log(`${name.padEnd(12)} median ${sorted[sorted.length >> 1].toFixed(0).padStart(5)}   best ${sorted[0].toFixed(0).padStart(5)}`);
  }
} finally {
  await browser.close();
  server.stop();
}
