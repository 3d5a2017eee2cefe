/* The module in Node against the native command: the same energies and labels. Run from the root of the repository:
 *   node --test tests/web/library.test.mjs     (DCRF_WEB is the folder of the module, build-web/page by default) */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test, { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { readNpy, readPng } from './read.mjs';
import { readIndexed } from '../../web/indexed.js';

const folder = resolve(process.env.DCRF_WEB ?? 'build-web/page');
const { load, refine, scribble, solve, Session } = await import(pathToFileURL(join(folder, 'dcrf.js')));
const scratch = mkdtempSync(join(tmpdir(), 'dcrf-web-'));
after(() => rmSync(scratch, { recursive: true }));

execFileSync('build/examples/scene', [scratch]);
const photographs = resolve('../shared/data/msrc-example');
const scenes = [{ name: 'scene', image: join(scratch, 'image.png'), unary: join(scratch, 'unary.npy') }];
if (existsSync(photographs))
  scenes.push({ name: 'photograph', image: join(photographs, 'photo1.png'), unary: join(photographs, 'photo1_energy.npy') });

const KERNELS = [{ sigma: 3, weight: 0.4 }, { sigma: 30, colourSigma: 8, weight: 0.8 }];
const KERNEL_OPTIONS = ['--spatial', '3,0.4', '--bilateral', '30,8,0.8'];

function native(scene, options, kernels = KERNEL_OPTIONS) {
  const [json, labels] = ['result.json', 'labels.npy'].map((name) => join(scratch, name));
  execFileSync('build/dcrf', ['solve', scene.image, '--unary', scene.unary, '-q', '--json', json, '-o', labels, ...kernels,
    ...options]);
  return { result: JSON.parse(readFileSync(json)), labels: readNpy(labels).data };
}

function agreement(a, b) {
  assert.equal(a.length, b.length);
  return a.reduce((same, label, i) => same + (label === b[i] ? 1 : 0), 0) / a.length;
}

const close = (value, expected, tolerance, what) => assert.ok(
  Math.abs(value - expected) <= tolerance * Math.abs(expected), `${what}: ${value}, natively ${expected}`);

for (const variant of ['simd', 'plain', 'threads'])
  for (const scene of scenes)
    test(`mean field on the ${scene.name} as natively (${variant})`, async () => {
      const library = await load({ variant, threads: 2 });
      assert.equal(library.cpu, variant === 'plain' ? 'c' : 'simd128');
      const image = readPng(scene.image), unary = readNpy(scene.unary);
      const result = await solve({ library, image, unary: unary.data, labels: unary.shape[2], kernels: KERNELS, method: 'mf' });
      const expected = native(scene, ['-m', 'mf']);
      close(result.energy.total, expected.result.energy, 1e-5, 'energy');
      const same = agreement(result.labels, expected.labels);
      assert.ok(same >= 0.9999, `${100 * same} % of the labels agree`);
      library.close();
    });

/* Lattices of noise: helpers allocate while they look vertices up. */
test('threads share the heap', async () => {
  const [width, height, labels] = [48, 40, 3];
  let state = 7;
  const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const data = new Uint8ClampedArray(width * height * 4).map(() => random() * 255);
  const unary = new Float32Array(width * height * labels).map(() => random() * 3);
  const kernels = [{ sigma: 5, colourSigma: 8, weight: 0.8 }, { sigma: 4, colourSigma: 6, weight: 0.3 }];
  const library = await load({ variant: 'threads', threads: 2 });
  const energies = new Set();
  for (let i = 0; i < 500; i++)
    energies.add((await solve({ library, image: { width, height, data }, unary, labels, kernels, method: 'mf', iterations: 1 })).energy.total);
  assert.equal(energies.size, 1);
  library.close();
});

test('QP, LP and cliques on the scene as natively', async () => {
  const [scene] = scenes;
  const image = readPng(scene.image), unary = readNpy(scene.unary);
  for (const [method, cliques, options] of [
    ['qp', undefined, ['-m', 'qp', '-n', '20']],
    ['lp', undefined, ['-m', 'lp', '-n', '10']],
    ['mf', { method: 'slic', gamma: 20, eta: 500 }, ['-m', 'mf', '--cliques', 'slic', '--gamma', '20', '--eta', '500']],
  ]) {
    const result = await solve({ image, unary: unary.data, labels: 5, kernels: KERNELS, method, cliques,
      iterations: { qp: 20, lp: 10, mf: -1 }[method] });
    const expected = native(scene, options);
    close(result.energy.total, expected.result.energy, 1e-5, `energy of ${method}`);
    if (method === 'lp') close(result.lowerBound, expected.result.lower_bound, 1e-5, 'lower bound');
    const same = agreement(result.labels, expected.labels);
    assert.ok(same >= 0.9999, `${method}: ${100 * same} % of the labels agree`);
  }
});

test('the default kernels and their strength are the command\'s', async () => {
  const [scene] = scenes;
  const image = readPng(scene.image), unary = readNpy(scene.unary);
  const result = await solve({ image, unary: unary.data, labels: 5 });
  const expected = native(scene, ['-m', 'mf'], []);
  close(result.energy.total, expected.result.energy, 1e-5, 'energy');
  assert.ok(agreement(result.labels, expected.labels) >= 0.9999);
});

test('a rough mask is refined as the command refines it', async () => {
  const [scene] = scenes, image = readPng(scene.image), { width, height } = image;
  const truth = (await readIndexed(new Blob([readFileSync(join(scratch, 'truth.png'))]))).numbers;
  const rough = truth.map((_, a) => truth[Math.min(height - 1, (Math.floor(a / width) & ~7) + 4) * width + Math.min(width - 1, (a % width & ~7) + 4)]);
  const { encodePng } = await import(pathToFileURL(join(folder, 'files.js'))), png = await encodePng(Uint8Array.from(rough), width, height);
  const [file, json, labels] = ['rough.png', 'rough.json', 'rough.npy'].map((name) => join(scratch, name));
  writeFileSync(file, Buffer.from(await png.arrayBuffer()));
  const text = execFileSync('build/dcrf', ['solve', scene.image, '--labels-prior', file, '-o', labels], { encoding: 'utf8' });
  execFileSync('build/dcrf', ['solve', scene.image, '--labels-prior', file, '-q', '--json', json]);
  const { energy, moves, labels: refined } = await refine({ image, mask: rough });
  close(energy.total, JSON.parse(readFileSync(json)).energy, 1e-5, 'energy');
  assert.ok(agreement(refined, readNpy(labels).data) >= 0.9999);
  const [, pixels, percent] = text.match(/borders moved by ([\d.]+) pixels on average; ([\d.]+) % of/);
  close(moves.meanOffset, Number(pixels), 0.05, 'pixels'); // two digits are printed
  close(100 * moves.changed / moves.known, Number(percent), 0.05, 'percent');
  assert.equal(moves.changed, refined.reduce((sum, label, a) => sum + (label === rough[a] ? 0 : 1), 0));
});

test('masks and small unaries: mistakes are errors with a message', async () => {
  const image = { data: new Uint8Array(3 * 12), width: 4, height: 3 }, session = new Session(await load({ threads: 1 }), image, 2);
  assert.throws(() => session.maskMoves(), /there is no mask/);
  assert.throws(() => session.setMask([0, 1]), /the mask has 2 numbers, not one for each of 12 pixels/);
  assert.throws(() => session.setMask(new Int32Array(12).fill(-1)), Error);
  assert.throws(() => session.setMask(new Int32Array(12).fill(7)), Error);
  assert.throws(() => session.setMask(new Int32Array(12), 1, [0.5]), /sureness has 1 numbers/);
  assert.throws(() => session.setUnary([1, 0, 0, 1], { width: 8, height: 1 }), /width is 8/);
  assert.throws(() => session.setUnary([1, 0, 0, 1], { width: 3, height: 1 }), /not 3 x 1 pixels x 2 labels/);
  session.setUnary([1, 0, 0, 1], { width: 2, height: 1 });
  session.setMask(Int32Array.from({ length: 12 }, (_, a) => (a % 4 > 1 ? 1 : 0)));
  await session.run();
  assert.equal(session.maskMoves().known, 12);
  session.free();
});

test('what is proven holds for the best of all labellings', async () => {
  const pixels = 8, image = { data: Uint8Array.from([10, 12, 200, 205, 14, 9, 210, 190]), width: 4, height: 2 };
  const session = new Session(await load({ threads: 1 }), image, 2);
  session.setUnary(Float32Array.from([0, 1, 0.6, 0.5, 1, 0, 0.2, 0.3, 0, 0.8, 0.7, 0, 1, 0.1, 0.4, 0]));
  for (const kernel of [{ sigma: 1, weight: 0.2 }, { sigma: 2, colourSigma: 20, weight: 0.3 }]) session.addKernel(kernel);
  let best = { total: Infinity };
  for (let number = 0; number < 1 << pixels; number++) {
    const labels = Array.from({ length: pixels }, (_, a) => number >> a & 1), { total } = session.energyOf(labels);
    if (total < best.total) best = { total, labels };
  }
  const { energy, lowerBound } = await session.run({ method: 'lp' });
  assert.ok(lowerBound <= best.total && best.total <= energy.total);
  const proven = session.prove(), { labels } = session.result();
  assert.ok(proven.includes(1));
  proven.forEach((one, a) => one && assert.equal(labels[a], best.labels[a]));
  session.free();
});

test('the energy of a labelling, marginals and kinds of unaries', async () => {
  const library = await load({ threads: 1 });
  const image = { data: new Uint8Array([10, 12, 200, 205]), width: 4, height: 1 };
  const session = new Session(library, image, 2);
  session.setUnary(new Float32Array([0, 1, 0, 1, 1, 0, 1, 0]));
  assert.deepEqual(session.energyOf([0, 0, 1, 1]), { total: 0, unary: 0, pairwise: 0, cliques: 0 });
  const { total, unary } = session.energyOf([1, 1, 1, 1]); // the total is rounded up
  assert.equal(unary, 2);
  assert.ok(total >= 2 && total < 2 * (1 + 1e-11));
  session.addKernel({ sigma: 1, weight: 1 });
  assert.ok(session.energyOf([0, 0, 1, 1]).pairwise > 0);
  const p = new Float32Array([0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.25, 0.75]);
  session.setUnary(p, { kind: 'probabilities' });
  session.setWeight(0, 0);
  const { marginals, labels } = await session.run({ method: 'mf' });
  marginals.forEach((value, i) => assert.ok(Math.abs(value - p[i]) < 1e-5));
  assert.deepEqual([...labels], [0, 0, 1, 1]);
  session.setUnary(p.map((x, i) => p[4 * (i % 2) + i] ?? x), { kind: 'logits', layout: 'chw' });
  session.free();
});

test('mistakes are errors with a message, and lose nothing', async () => {
  const image = { data: new Uint8Array(3 * 12), width: 4, height: 3 };
  const unary = new Float32Array(24);
  await assert.rejects(solve({ image: { ...image, width: 5 }, unary, labels: 2 }), /image has 36 bytes/);
  await assert.rejects(solve({ image, unary: unary.subarray(1) }), /unary has 23 numbers/);
  for (const [call, name] of [[solve, 'unary'], [refine, 'mask'], [scribble, 'strokes']]) {
    await assert.rejects(call({ image }), new RegExp(`${name} is missing: .*energies, probabilities or logits.*refine.*mask.*strokes`));
    await assert.rejects(call(), /image is missing: { data, width, height }/);
  }
  await assert.rejects(solve({ image, unary, method: 'guess' }), /method 'guess' is none of mf, qp, lp/);
  await assert.rejects(solve({ image, unary, kernels: [{ sigma: -1, weight: 1 }] }), /sigma/);
  await assert.rejects(solve({ image, unary: unary.fill(NaN, 3, 4) }), /nan at x = 1, y = 0/);
  assert.equal((await solve({ image, unary: unary.fill(0) })).labels.length, 12);
});

/* The module takes 32 bits and drops fractions: sizes that it would read as others never reach it. */
test('sizes and counts are whole numbers of their range', async () => {
  const library = await load({ threads: 1 });
  const of = (width, height, labels = 2, bytes = 12) => () => new Session(library, { data: new Uint8Array(bytes), width, height }, labels);
  await assert.rejects(solve({ image: { data: new Uint8Array(9), width: 1.5, height: 2 }, unary: new Float32Array(9), labels: 3 }),
    { name: 'RangeError', message: /^width is 1.5/ });
  for (const [make, name, message] of [
    [of(1.5, 8), 'RangeError', /^width is 1.5/], [of(6, 2 / 3), 'RangeError', /^height/],
    [of(2 ** 32 + 2, 2), 'RangeError', /^width/], [of(2, 2 ** 32 + 2), 'RangeError', /^height/],
    [of(NaN, 2), 'RangeError', /^width is NaN/], [of(0, 2), 'RangeError', /^width is 0/], [of(-4, -1), 'RangeError', /^width is -4/],
    [of(Infinity, 2), 'RangeError', /^width/], [of('4', 1), 'TypeError', /^width is not a number/],
    [of(undefined, 3), 'TypeError', /^width/], [of(2 ** 20, 2 ** 20), 'RangeError', /^width x height/],
    [of(4, 1, 1.5), 'RangeError', /^labels is 1.5/], [of(4, 1, 0), 'RangeError', /^labels/], [of(4, 1, 65536), 'RangeError', /^labels/],
    [of(4, 1, 2 ** 32 + 2), 'RangeError', /^labels/], [of(4, 1, NaN), 'RangeError', /^labels/]])
    assert.throws(make, { name, message });
  const session = of(4, 1)();
  session.setUnary(new Float32Array([0, 1, 0, 1, 1, 0, 1, 0]));
  session.addKernel({ sigma: 1, weight: 1 });
  for (const kernel of [1, -1, 0.5, 2 ** 32, NaN]) assert.throws(() => session.setWeight(kernel, 1), { name: 'RangeError', message: /^kernel/ });
  for (const [settings, message] of [[{ iterations: 1.5 }, /^iterations/], [{ iterations: 2 ** 32 }, /^iterations/], [{ iterations: 0 }, /^iterations/],
    [{ gap: NaN }, /^gap is NaN/], [{ gap: -2 }, /^gap/], [{ timeLimit: NaN }, /^timeLimit/]])
    await assert.rejects(session.run(settings), { name: 'RangeError', message });
  for (const labels of [[0, 0, 1], [0, 0, 1, 2], [0, 0, 1, 65536], [0, 0, 1, 0.5], [0, 0, 1, -1]])
    assert.throws(() => session.energyOf(labels), { name: 'RangeError' });
  assert.throws(() => session.scribble([0, 255, 255, 257]), { name: 'TypeError', message: /^strokes/ });
  assert.throws(() => session.setUnary(new Float32Array(8), { layout: 'cwh' }), /layout 'cwh' is none of hwc, chw/);
  assert.throws(() => session.setUnary(new Float32Array(8), { kind: 'constructor' }), /unary kind 'constructor'/);
  assert.throws(() => session.addKernel({ sigma: 1, weight: 1, normalize: 'both' }), /normalize 'both'/);
  assert.throws(() => session.setCliques({ method: 'valueOf' }), /superpixel method 'valueOf'/);
  for (const method of ['toString', '__proto__', 'constructor']) await assert.rejects(session.run({ method }), /method '.*' is none of mf, qp, lp/);
  assert.deepEqual([...(await session.run()).labels], [0, 0, 1, 1]);
  session.free();
});

test('a session has one run at a time, and nothing changes under it', async () => {
  const library = await load({ threads: 1 });
  const image = readPng(scenes[0].image), unary = readNpy(scenes[0].unary);
  const settings = { method: 'lp', iterations: 30, gap: 0 };
  const alone = await solve({ library, image, unary: unary.data, labels: 5, kernels: KERNELS, ...settings });
  const session = new Session(library, image, 5);
  session.setUnary(unary.data);
  for (const kernel of KERNELS) session.addKernel(kernel);
  let seen = 0;
  const first = session.run({ ...settings, onProgress: () => {
    seen++;
    for (const change of [() => session.setUnary(unary.data), () => session.addKernel(KERNELS[0]), () => session.setWeight(0, 1),
      () => session.useDefaultKernels(), () => { session.strength = 1; }, () => session.setCliques(), () => session.prove(),
      () => session.scribble(new Uint8Array(image.width * image.height)), () => session.free()])
      assert.throws(change, /a run is under way/);
  } });
  await assert.rejects(session.run({ method: 'mf' }), /a run is under way/);
  const result = await first;
  assert.ok(seen > 0);
  assert.equal(result.energy.total, alone.energy.total);
  assert.deepEqual(result.labels, alone.labels);
  /* A run that fails has ended. */
  await assert.rejects(session.run({ method: 'lp', onProgress: () => { throw new Error('enough'); } }), /enough/);
  assert.deepEqual((await session.run(settings)).labels, alone.labels);
  session.free();
});

test('after free() there are errors, not traps', async () => {
  const library = await load({ threads: 1 });
  const session = new Session(library, { data: new Uint8Array(4), width: 4, height: 1 }, 2);
  /* Before a run there is none, which is no trap either. */
  assert.equal(session.info().iterations, 0);
  assert.throws(() => session.prove());
  await assert.rejects(session.run({ ofScribbles: true }));
  session.free();
  session.free();
  for (const use of [() => session.setUnary(new Float32Array(8)), () => session.addKernel(KERNELS[0]), () => session.useDefaultKernels(),
    () => session.strength, () => { session.strength = 1; }, () => session.setCliques({}), () => session.setCliques(), () => session.prove(),
    () => session.info(), () => session.result(), () => session.energyOf([0, 0, 0, 0]), () => session.scribble(new Uint8Array(4)),
    () => session.scribbleKernels])
    assert.throws(use, /the session was freed/);
  await assert.rejects(session.run(), /the session was freed/);
});

/* The command's own rules: what it asks for, the page asks for. */
test('the page tells kinds of unaries, or asks, as the command does', async () => {
  const { unaryOf } = await import(pathToFileURL(join(folder, 'files.js')));
  const png = readPng(scenes[0].image), pixels = png.width * png.height;
  let state = 3;
  const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const rows = (labels, make) => Float32Array.from(Array.from({ length: pixels }, () => make(labels)).flat());
  const raw = (labels) => Array.from({ length: labels }, () => 4 * random());
  const probabilities = (labels) => { const e = raw(labels).map(Math.exp), sum = e.reduce((a, b) => a + b); return e.map((x) => x / sum); };
  const npy = (data, labels) => {
    const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${png.height}, ${png.width}, ${labels}), }`;
    const text = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + '\n', start = Buffer.alloc(10);
    start.write('\x93NUMPY\x01\x00', 'latin1');
    start.writeUInt16LE(text.length, 8);
    return Buffer.concat([start, Buffer.from(text, 'latin1'), Buffer.from(data.buffer)]);
  };
  for (const [make, labels, kind] of [[probabilities, 3, 'probabilities'], [(n) => probabilities(n).map((p) => -Math.log(p)), 3, 'energies'],
    [(n) => probabilities(n).map(Math.log), 3, 'logits'], [(n) => raw(n).map((x) => x - 2), 3, undefined], [raw, 3, 'energies'],
    [(n) => raw(n).map((x) => x / 4), 5, undefined], [() => (random() < 0.5 ? [0, 1] : [1, 0]), 2, undefined]]) {
    const data = rows(labels, make), shape = [png.height, png.width, labels], file = join(scratch, 'kind.npy');
    writeFileSync(file, npy(data, labels));
    const command = () => JSON.parse(execFileSync('build/dcrf', ['solve', scenes[0].image, '--unary', file, '-n', '1', '--json', '-'], { stdio: 'pipe' }));
    if (kind) {
      assert.equal(unaryOf({ shape, data }, png).kind, kind);
      assert.equal(command().unary.kind, kind);
    } else {
      assert.throws(() => unaryOf({ shape, data }, png), /It cannot be told what the numbers are.*load them again/);
      assert.throws(command, /--unary-kind/);
      assert.equal(unaryOf({ shape, data }, png, 'logits').kind, 'logits');
    }
  }
});

test('out of memory is an error, and the module goes on working', async () => {
  const library = await load({ threads: 1 });
  const huge = { data: { length: 3 * 12000 * 12000 }, width: 12000, height: 12000 };
  assert.throws(() => new Session(library, huge, 4), /too many to address/);
  const small = new Session(library, { data: new Uint8Array(3 * 12), width: 4, height: 3 }, 2);
  const PAGE_BYTES = 65536, MOST_PAGES = 65535;
  library.memory.grow(MOST_PAGES - library.memoryBytes / PAGE_BYTES); /* nothing is left to grow */
  const large = { data: new Uint8Array(3 * 1000 * 1000), width: 1000, height: 1000 };
  assert.throws(() => new Session(library, large, 4), /memory/);
  assert.equal(small.energyOf(new Uint16Array(12)).total, 0);
});

test('a signal ends a run, and the best labelling so far is the result', async () => {
  const [scene] = scenes;
  const image = readPng(scene.image), unary = readNpy(scene.unary);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 30);
  const result = await solve({ image, unary: unary.data, labels: 5, kernels: KERNELS, method: 'lp', gap: 0, iterations: 100000,
    signal: controller.signal });
  assert.equal(result.stop, 'cancelled');
  assert.equal(result.labels.length, 240 * 160);
});

test('threads change nothing', async () => {
  const [scene] = scenes;
  const image = readPng(scene.image), unary = readNpy(scene.unary);
  const results = [];
  for (const threads of [1, 2, 3]) {
    const library = await load({ variant: threads > 1 ? 'threads' : 'simd', threads });
    results.push(await solve({ library, image, unary: unary.data, labels: 5, kernels: KERNELS }));
    library.close();
  }
  for (const result of results.slice(1)) {
    assert.deepEqual(result.marginals, results[0].marginals);
    assert.deepEqual(result.labels, results[0].labels);
    assert.equal(result.energy.total, results[0].energy.total);
  }
});
