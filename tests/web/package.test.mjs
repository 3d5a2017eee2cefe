/* The npm package, installed as a user installs it: PACKAGE is the archive, TYPESCRIPT the folder of node_modules with tsc, if any. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test, { after } from 'node:test';

const folder = mkdtempSync(join(tmpdir(), 'dcrf-package-'));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
execFileSync('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', resolve(process.env.PACKAGE)], { cwd: folder });

const program = `
import { load, refine, scribble, solve, Session } from 'dcrf';

const width = 8, height = 4;
const data = new Uint8Array(3 * width * height);
const unary = new Float32Array(2 * width * height);
const strokes = new Uint8Array(width * height).fill(255);
for (let a = 0; a < width * height; a++) {
  const right = a % width >= 4;
  data.fill(right ? 200 : 40, 3 * a, 3 * a + 3);
  unary[2 * a + (right ? 0 : 1)] = a % 5 === 0 ? -0.5 : 1;
}
strokes[8] = 0;
strokes[15] = 1;
const image = { data, width, height };
const kernels = [{ sigma: 2, weight: 0.5 }, { sigma: 4, colourSigma: 10, weight: 1 }];
const result = await solve({ image, unary, kernels, method: 'lp' });
const mask = await scribble({ image, strokes });
const refined = await refine({ image, mask: Int32Array.from(data.filter((_, i) => i % 3 === 0), (grey, a) => (a === 9 ? -1 : grey > 100 ? 1 : 0)) });
const library = await load({ threads: 2 });
const again = await solve({ library, image, unary, kernels, method: 'lp' });
const { version, threads } = library;
library.close();
console.log(JSON.stringify({ labels: [...result.labels], mask: [...mask.labels], refined: [...refined.labels], changed: refined.moves.changed, same: again.energy.total === result.energy.total,
  gap: result.relativeGap, version, threads, session: typeof Session }));
`;

test('the package runs in Node', () => {
  writeFileSync(join(folder, 'run.mjs'), program);
  const output = JSON.parse(execFileSync('node', ['run.mjs'], { cwd: folder }));
  const halves = Array.from({ length: 32 }, (_, a) => (a % 8 >= 4 ? 1 : 0));
  assert.deepEqual(output.labels, halves);
  assert.deepEqual(output.mask, halves);
  assert.deepEqual([output.refined, output.changed], [halves, 0]);
  assert.ok(output.same && output.gap < 1e-3 && output.threads === 2);
});

test('its types fit', { skip: !process.env.TYPESCRIPT && 'no TypeScript' }, () => {
  writeFileSync(join(folder, 'run.ts'), `${program}\n// @ts-expect-error\nconst wrong: string = result.labels;\nexport { wrong };\n`);
  const { status, stdout } = spawnSync('node', [join(resolve(process.env.TYPESCRIPT), 'typescript/bin/tsc'), '--noEmit', '--strict', '--target', 'es2022',
    '--module', 'nodenext', '--lib', 'es2022,dom', 'run.ts'], { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
